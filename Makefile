# watchctl and libwatchpoint: who touched this memory?
#
#   bmake            build; the command runs in place as watchctl/watchctl
#   bmake test       run every test once, in a few minutes
#   bmake verify     what takes longer: every test again under sanitizers,
#                    fuzzing, static checks, and most of the matrix
#   bmake matrix     try what works on Debian's kernels, for amd64 and arm64, in
#                    guests that qemu emulates: docs/support.md.  They come from
#                    the package mirror that apt is configured with
#   bmake lint       the static checks alone
#   bmake demo       watch an example program and show a few hits
#   bmake bench      measure the cost of a watch and the ratios that tests/bench
#                    promises
#   bmake install    DESTDIR= and prefix= as usual
#   bmake dist       watchctl-VERSION.tar.gz of the last commit
#   bmake deb        Debian packages, in packages/
#   bmake clean      remove what was built
#
# WERROR=yes makes warnings errors.  SANITIZE=yes builds in obj.sanitize, with
# clang's ASan and UBSan.

SUBDIR=		lib watchctl

beforeinstall test demo bench: all
clean: clean-others

# what the system's rules would do below
.if make(lint)
NO_SUBDIR=
.endif

.include <bsd.subdir.mk>

RESULTS?=	${.OBJDIR}/tests/results
.export RESULTS

# Everything that SUBDIR leaves out is built for the tests only.
EVERYTHING=	${.MAKE} -C ${.CURDIR} -j2 all && \
		${.MAKE} -C ${.CURDIR}/examples -j2 all && \
		${.MAKE} -C ${.CURDIR}/tests -j2 all

# three jobs: tests that watch often wait, and what runs beside them does not
test: .PHONY
	@${EVERYTHING}
	@${.MAKE} -C ${.CURDIR}/tests -j3 run
	@sh ${.CURDIR}/tests/run.sh

# It needs the package mirror; where that cannot be had, it is told as not run.
MATRIX=		env TIMEOUT=5400 \
		${.MAKE} -C ${.CURDIR}/tests run TEST=matrix LINT=

.if defined(SANITIZE)
verify: .PHONY
	@${EVERYTHING}
	@${.MAKE} -C ${.CURDIR}/tests -j2 verify
.else
# --inside is tested with the library as users have it
verify: .PHONY all
	@${.MAKE} SANITIZE=yes verify
	@env PERMISSIONS=${.CURDIR}/docs/permissions.md TIMEOUT=1800 \
	    ${.MAKE} -C ${.CURDIR}/tests run \
	    TEST='permissions_test musl systems' LINT=
	@${EVERYTHING}
	@env QUICK=yes ${MATRIX}
	@sh ${.CURDIR}/tests/run.sh
.endif

matrix: .PHONY all
	@${EVERYTHING}
	@env SUPPORT=${.CURDIR}/docs/support.md ${MATRIX}
	@sh ${.CURDIR}/tests/run.sh

# The tally is the last line, also after what bmake has to say of a failure.
.if make(test) || make(verify) || make(lint) || make(matrix)
.if !defined(SANITIZE)
.BEGIN:
	@rm -f ${RESULTS}
.ERROR:
	@sh ${.CURDIR}/tests/run.sh | tail -n 1
.endif
.endif

lint: .PHONY
	@${.MAKE} -C ${.CURDIR} -j2 all
	@${.MAKE} -C ${.CURDIR}/tests -j2 lint
	@sh ${.CURDIR}/tests/run.sh

demo: .PHONY
	@${.MAKE} -C ${.CURDIR}/examples demo

bench: .PHONY
	@${.MAKE} -C ${.CURDIR}/tests -j2 benchmarks

# The same tarball each time: its times are the commit's.
DIST=		watchctl-${VERSION}
dist: .PHONY
	cd ${.CURDIR} && git archive --format=tar --prefix=${DIST}/ HEAD | \
	    gzip -9n > ${DIST}.tar.gz

PACKAGES=	${.CURDIR}/packages
deb: .PHONY dist
	rm -rf ${PACKAGES} && mkdir ${PACKAGES}
	tar -xzf ${.CURDIR}/${DIST}.tar.gz -C ${PACKAGES}
	profiles=$$([ "$$(${.MAKE} -C ${.CURDIR}/lib -V HAS_NARROW)" = yes ] || \
	    echo nobiarch) && cd ${PACKAGES}/${DIST} && \
	    DEB_BUILD_PROFILES="$$DEB_BUILD_PROFILES $$profiles" \
	    dpkg-buildpackage -us -uc -b
	rm -rf ${PACKAGES}/${DIST}

clean-others: .PHONY
	@${.MAKE} -C ${.CURDIR}/examples clean
	@${.MAKE} -C ${.CURDIR}/tests clean
	rm -rf ${TOP}/obj.sanitize ${TOP}/obj.matrix ${TOP}/packages \
	    ${TOP}/watchctl-*.tar.gz
