/*
 * page_style: the page's style sheet, which loads no other resource.
 */
#ifndef PAGE_STYLE_H
#define PAGE_STYLE_H

#define PAGE_STYLE							\
":root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--fg:#1c2128;"	\
"--dim:#5d6673;--line:#dfe3e8;--bad:#b3261e;--badbg:#fdecea;"		\
"--ok:#1a7f37;--hi:#fff4c2;--link:#0b57d0}\n"				\
".c0{--c:#9aa1ab}.c1{--c:#0b6bcb}.c2{--c:#d55e00}.c3{--c:#008f6b}\n"	\
".c4{--c:#b4479a}.c5{--c:#b98900}.c6{--c:#3aa0d8}.c7{--c:#7048c4}\n"	\
".c8{--c:#c2334d}.c9{--c:#6b8e00}.c10{--c:#00838f}.c11{--c:#8d5a34}\n"	\
".c12{--c:#e0679e}\n"							\
"@media(prefers-color-scheme:dark){:root{--bg:#0f1318;--card:#181d24;"	\
"--fg:#e4e8ee;--dim:#98a2b0;--line:#2c343f;--bad:#ff8a80;"		\
"--badbg:#3a1d1c;--ok:#56d364;--hi:#3d3511;--link:#8ab4f8}\n"		\
".c0{--c:#7d8692}.c1{--c:#58a6ff}.c2{--c:#ff9248}.c3{--c:#3fc79a}\n"	\
".c4{--c:#e28ad0}.c5{--c:#e3b341}.c6{--c:#8fd3ff}.c7{--c:#b79bff}\n"	\
".c8{--c:#ff7b8f}.c9{--c:#a8d04a}.c10{--c:#4dd0e1}.c11{--c:#cf9a6b}\n"	\
".c12{--c:#ff9ec7}}\n"							\
"*{box-sizing:border-box}\n"						\
"body{margin:0;background:var(--bg);color:var(--fg);"			\
"font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;"	\
"overflow-wrap:anywhere}\n"						\
"main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}\n"	\
"h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem}\n"		\
"h2{font-size:1.15rem;margin:0 0 .25rem}\n"				\
"h3{font-size:.8rem;margin:1.1rem 0 .3rem;color:var(--dim);"		\
"text-transform:uppercase;letter-spacing:.05em}\n"			\
"p{margin:.25rem 0}a{color:var(--link)}\n"				\
"code,pre,.mono{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,"	\
"Consolas,monospace;font-size:.875em}\n"				\
".dim{color:var(--dim)}.small{font-size:.875rem}.bad{color:var(--bad)}\n" \
"section{background:var(--card);border:1px solid var(--line);"		\
"border-radius:.75rem;padding:1rem 1.1rem;margin-top:1rem}\n"		\
".account{display:grid;gap:.75rem;"					\
"grid-template-columns:repeat(auto-fit,minmax(6.5rem,1fr))}\n"		\
".account div{border-left:3px solid var(--line);padding-left:.7rem}\n"	\
".account b{display:block;font-size:1.35rem;line-height:1.2;"		\
"font-variant-numeric:tabular-nums}\n"					\
".account .bad{border-color:var(--bad)}\n"				\
".account span{color:var(--dim);font-size:.85rem}\n"			\
"ul,ol{margin:.4rem 0;padding-left:1.6rem}li{margin:.2rem 0}\n"		\
".tag{display:inline-block;border-radius:.4rem;padding:0 .45rem;"	\
"font-size:.78rem;font-weight:600;background:var(--badbg);"		\
"color:var(--bad)}\n"							\
"figure{margin:.9rem 0 .6rem}\n"					\
"figcaption,.ends{display:flex;justify-content:space-between;gap:1rem;"	\
"font-size:.8rem;color:var(--dim);font-variant-numeric:tabular-nums}\n"	\
"svg{display:block;width:100%;height:11rem;background:var(--bg);"	\
"border:1px solid var(--line);border-radius:.4rem;margin:.2rem 0}\n"	\
"svg path{vector-effect:non-scaling-stroke;fill:none}\n"		\
".grid{stroke:var(--line);stroke-width:1px}\n"				\
".step{stroke:var(--dim);stroke-width:1px;opacity:.45}\n"		\
".dot{stroke:var(--c);stroke-width:4.5px;stroke-linecap:round}\n"	\
"svg .bar{fill:var(--c);stroke:var(--c);stroke-width:.6px}\n"		\
"details{border-top:1px solid var(--line)}\n"				\
"details:last-child{border-bottom:0}\n"					\
"summary{cursor:pointer;padding:.55rem .2rem;display:flex;"		\
"flex-wrap:wrap;gap:.15rem .6rem;align-items:baseline;list-style:none}\n" \
"summary::-webkit-details-marker{display:none}\n"			\
"summary:hover{background:var(--bg)}\n"					\
"summary:before{content:'\\25B8';color:var(--dim);width:.8rem}\n"	\
"details[open]>summary:before{content:'\\25BE'}\n"			\
".swatch{width:.8rem;height:.8rem;border-radius:.2rem;"			\
"background:var(--c);align-self:center;flex:none}\n"			\
".n{font-weight:600;font-variant-numeric:tabular-nums}\n"		\
".who{font-weight:600}\n"						\
".body{padding:0 .2rem .9rem 1.55rem}\n"				\
"dl{display:grid;grid-template-columns:max-content 1fr;"		\
"gap:.15rem 1rem;margin:.2rem 0;font-size:.9rem}\n"			\
"dt{color:var(--dim)}dd{margin:0;min-width:0}\n"			\
".src{margin:.3rem 0;border:1px solid var(--line);border-radius:.5rem;"	\
"background:var(--bg);padding:.4rem 0;font-size:.82rem;"		\
"line-height:1.55;white-space:pre-wrap}\n"				\
".src span,.src b{display:block;font-weight:400;"			\
"padding:0 .7rem 0 3.6rem;text-indent:-2.9rem}\n"			\
".src i{display:inline-block;width:2.3rem;margin-right:.6rem;"		\
"text-indent:0;"							\
"text-align:right;font-style:normal;color:var(--dim)}\n"		\
".src b{background:var(--hi)}\n"					\
".frames{font-size:.9rem;padding-left:2rem}\n"				\
".frames .dim{font-size:.85em;margin-left:.35rem}\n"			\
"@media(max-width:32rem){main{padding:1rem .6rem 3rem}"			\
"section{padding:.8rem .75rem}.body{padding-left:.2rem}"		\
".src span,.src b{padding-left:2.7rem;text-indent:-2.4rem}"		\
".src i{width:1.8rem}svg{height:9rem}}\n"				\
"@media print{body{background:#fff}section{break-inside:avoid}}\n"

#endif
