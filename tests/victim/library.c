/*
 * library: a victim to be stepped: it stops itself, then calls one function of
 * the C library after the other, without end.
 */
#include <fnmatch.h>
#include <iconv.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <regex.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

static char text[512], copy[4096];
static unsigned round_;

static int
compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void
strings(void)
{
	const size_t n = 1 + round_ * 37 % 400;
	char *rest, *word;

	memset(text, 'a' + (int)(round_ % 26), n);
	text[n] = '\0';
	memmove(copy + round_ % 64, copy + round_ % 31, n);
	memcpy(copy + 512, text, n + 1);
	(void)mempcpy(copy + 1024, text, n);
	(void)memccpy(copy, text, 'z', n);
	(void)stpcpy(copy, text);
	(void)strncpy(copy, text, n / 2);
	(void)strncat(copy, "tail", 3);
	copy[2000] = (char)(memcmp(copy, text, n) + strcmp(copy, text) +
	    strncmp(copy, text, n / 2) + strcasecmp(copy, text) +
	    strcoll(copy, text));
	copy[2001] = (char)(strlen(text) + strnlen(text, 9) +
	    strspn(text, "abc") + strcspn(text, "xyz"));
	copy[2002] = strchr(text, 'q') != NULL || strrchr(text, 'b') != NULL ||
	    memchr(text, 'c', n) != NULL || memrchr(text, 'd', n) != NULL ||
	    strstr(text, "aab") != NULL || strpbrk(text, "xyz") != NULL ||
	    memmem(text, n, "bbba", 4) != NULL || rawmemchr(text, 0) == NULL;
	(void)strcpy(copy, "one, two;three four");
	for (word = strtok_r(copy, ",; ", &rest); word != NULL;
	    word = strtok_r(NULL, ",; ", &rest))
		copy[2003] ^= *word;
	(void)strfry(text);
	(void)memfrob(text, n);
	(void)swab(text, copy, (ssize_t)(n & ~(size_t)1));
	free(strdup(text));
	(void)strxfrm(copy, text, 100);
}

static void
heap(void)
{
	static void *kept[64];

	for (unsigned i = 0; i < 24; i++) {
		void **at = &kept[(i * 7 + round_) % 64], *more;

		switch (i % 4) {
		case 0:
			free(*at);
			*at = malloc(1u << i % 18);
			break;
		case 1:
			free(*at);
			*at = calloc(i + 1, round_ % 90 + 1);
			break;
		case 2:
			if ((more = realloc(*at, round_ % 3000 + i)) != NULL)
				*at = more;
			break;
		default:
			free(*at);
			if (posix_memalign(at, 64, 300 * i) != 0)
				*at = NULL;
		}
	}
}

static void
numbers(void)
{
	static volatile double sum;
	const double x = 0.1 + round_;
	long double wide = (long double)x / 3;
	int exponent;

	(void)snprintf(text, sizeof(text), "%d %5.3f %-8s|%#lx %c %Lg %a %*d",
	    (int)round_, x, "name", 123456789L, 'x', wide, x, 7, -3);
	(void)sscanf("12 3.5 word 0x1f", "%*d %*f %31s %*x", copy);
	sum += strtod("1.25e-7", NULL) + (double)strtol("-77", NULL, 10) +
	    (double)strtoull("0x7fffffffffffffff", NULL, 0) +
	    (double)strtold("3.14159265358979", NULL) + atof("2.5");
	sum += sin(x) + cos(x) + exp(x / 1000) + log(x) + pow(x, 0.3) +
	    tan(x) + atan2(x, 2) + cbrt(x) + fmod(x, 0.7) + hypot(x, 3) +
	    tgamma(0.3) + erf(0.2) + frexp(x, &exponent) + ldexp(x, 2) +
	    (double)sinl(wide) + (double)expl(wide / 100) +
	    (double)powl(wide, 1.5L) + nearbyint(x) + sinf(0.3f) +
	    (double)lrint(x);
}

static void
tables(void)
{
	char name[24][8];
	ENTRY entry = { .key = name[3] };
	void *root = NULL;

	for (unsigned i = 0; i < 24; i++)
		(void)snprintf(name[i], sizeof(name[i]), "%u",
		    i * 7919 % 97 + round_ % 7);
	for (unsigned i = 0; i < 12; i++)
		(void)tsearch(name[i], &root, compare);
	while (root != NULL)
		(void)tdelete(*(char **)root, &root, compare);
	qsort(name, 24, sizeof(name[0]), compare);
	(void)bsearch("50", name, 24, sizeof(name[0]), compare);
	if (hcreate(30) != 0) {
		(void)hsearch(entry, ENTER);
		(void)hsearch(entry, FIND);
		hdestroy();
	}
	srandom(round_);
	copy[0] = (char)(random() + rand() + (long)(drand48() * 10));
}

static void
formats(void)
{
	const time_t when = 1700000000 + (time_t)round_ * 86399;
	wchar_t wide[64] = L"";
	struct tm tm;
	regex_t regex;
	regmatch_t match[3];
	mbstate_t mb;
	const char *from = "na\xc3\xafve text";

	(void)strftime(text, sizeof(text), "%c %j %U", gmtime_r(&when, &tm));
	(void)mktime(&tm);
	memset(&mb, 0, sizeof(mb));
	(void)mbsrtowcs(wide, &from, 63, &mb);
	(void)swprintf(wide, 64, L"%ls %d", L"wide", 5);
	(void)wcscat(wide, L"tail");
	copy[1] = (char)(wcslen(wide) + (wcschr(wide, L't') != NULL) +
	    (size_t)iswalpha(L'x'));
	if (regcomp(&regex, "([a-z]+)=([0-9]*)", REG_EXTENDED) == 0) {
		(void)regexec(&regex, "  key=123 ", 3, match, 0);
		regfree(&regex);
	}
	copy[2] = (char)fnmatch("*.[ch]", "library.c", 0);
}

static void
streams(void)
{
	FILE *f = fmemopen(copy, 1000, "w+");
	static jmp_buf back;
	char *line = NULL, *made = NULL;
	size_t size = 0;

	if (f != NULL) {
		(void)fprintf(f, "line %u\nsecond\n", round_);
		(void)fputc('x', f);
		(void)fwrite(text, 1, 100, f);
		rewind(f);
		(void)getline(&line, &size, f);
		(void)fgets(text, 100, f);
		(void)fgetc(f);
		(void)fseek(f, 3, SEEK_SET);
		(void)fread(text, 1, 50, f);
		(void)fclose(f);
	}
	f = open_memstream(&made, &size);
	if (f != NULL) {
		(void)fputs("into memory", f);
		(void)fclose(f);
	}
	free(line);
	free(made);
	if (setjmp(back) == 0)
		longjmp(back, 1);
}

/* What compilers seldom make. */
static void
oddities(void)
{
	__asm__ volatile(
	    "	lea %0,%%rdi\n	mov $40,%%ecx\n	mov $7,%%eax\n"
	    "	rep stosl\n"
	    "	lea %0,%%rsi\n	mov $10,%%ecx\n	rep movsq\n"
	    "	lea %0,%%rdi\n	mov $10,%%ecx\n	repne scasb\n"
	    "	lea %0,%%rdi\n	mov %%rdi,%%rsi\n	mov $10,%%ecx\n"
	    "	repe cmpsb\n	lodsq\n"
	    "	std\n	lea 64+%0,%%rdi\n	mov $20,%%ecx\n	rep stosb\n"
	    "	cld\n"
	    "	sub $128,%%rsp\n"	/* the red zone */
	    "	pushf\n	pushq %%rsp\n	pushq 8(%%rsp)\n	popq (%%rsp)\n"
	    "	pushw $3\n	popw 4(%%rsp)\n"
	    "	popq %%rcx\n	popf\n"
	    "	enter $64,$0\n	leave\n"
	    "	push %%rbp\n	mov %%rsp,%%rbp\n	enter $32,$2\n"
	    "	leave\n	pop %%rbp\n"
	    "	add $128,%%rsp\n"
	    "	lea %0,%%rbx\n	mov $3,%%eax\n	xlat\n"
	    "	lea %0,%%rax\n	mov %%rax,(%%rax)\n	mov (%%rax),%%rax\n"
	    "	mov $-70,%%rcx\n	bts %%rcx,64+%0\n"
	    "	btw %%cx,64+%0\n"
	    "	lock xaddq %%rcx,64+%0\n	xchgb %%cl,64+%0\n"
	    "	lock cmpxchg16b 64+%0\n	cmpxchg8b 64+%0\n"
	    "	sbbl $3,68+%0\n	rclb %%cl,64+%0\n	shldl %%ecx,64+%0\n"
	    "	setnp 64+%0\n	movnti %%rcx,64+%0\n	notl 64+%0\n"
	    "	fxsave 1024+%0\n	fnstenv 8+%0\n	fldenv 8+%0\n"
	    "	fildll 64+%0\n	fistps 64+%0\n	fldt 64+%0\n"
	    "	fbstp 64+%0\n	fnstcw 64+%0\n	stmxcsr 64+%0\n"
	    "	movdqu 64+%0,%%xmm1\n	movhps %%xmm1,64+%0\n"
	    "	pextrw $1,%%xmm1,64+%0\n	movntdq %%xmm1,1024+%0\n"
	    "	maskmovdqu %%xmm1,%%xmm1\n	movss %%xmm1,64+%0\n"
	    : "=m"(copy) : : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "cc",
	    "xmm1", "memory");
}

int
main(void)
{
	(void)setlocale(LC_ALL, "C.UTF-8");
	(void)raise(SIGSTOP);
	for (;; round_++) {
		oddities();
		strings();
		heap();
		numbers();
		tables();
		formats();
		streams();
	}
}
