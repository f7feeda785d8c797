/* culprit: finds the function that is responsible for a hit. */
#include "policy/culprit.h"

#include <fnmatch.h>
#include <string.h>

/* Whether the file name of the frame's module matches. */
static bool
is_module(const struct ex_frame *frame, const char *const *patterns, size_t n)
{
	const char *name = frame->module == NULL ? "" :
	    ex_module_name(frame->module);

	for (size_t i = 0; i < n; i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

bool
culprit_is_loader(const struct ex_frame *frame)
{
	static const char *const modules[] = {"ld-linux*.so*", "ld-*.so"};

	return is_module(frame, modules, 2) || (frame->function != NULL &&
	    strcmp(frame->function, "_dl_relocate_static_pie") == 0);
}

bool
culprit_is_library(const struct ex_frame *frame)
{
	static const char *const modules[] = {
		"libc.so*", "libc-[0-9]*.so", "ld-linux*", "ld-*.so",
		"libpthread.so*", "libpthread-*.so", "libstdc++*", "libc++*",
		"libgcc_s*", "\\[vdso]",
	};
	const char *name = frame->function;

	return is_module(frame, modules, sizeof(modules) /
	    sizeof(modules[0])) || (name != NULL &&
	    (strncmp(name, "std::", 5) == 0 ||
	    strncmp(name, "__gnu_cxx::", 11) == 0));
}

/* Functions that access what their caller tells them to, and may be in the
   program itself: linked statically, inlined, or its own. */
static const char *const servants[] = {
	"memccpy", "memchr", "memcmp", "memcpy", "memmem", "memmove",
	"mempcpy", "memrchr", "memset", "explicit_bzero", "bcopy", "bzero",
	"rawmemchr", "stpcpy", "stpncpy", "strcasecmp", "strcasestr",
	"strcat", "strchr", "strchrnul", "strcmp", "strcoll", "strcpy",
	"strcspn", "strdup", "strerror", "strfmon", "strftime", "strlcat",
	"strlcpy", "strlen", "strncasecmp", "strncat", "strncmp", "strncpy",
	"strndup", "strnlen", "strpbrk", "strrchr", "strsep", "strspn",
	"strstr", "strtod", "strtof", "strtok", "strtol", "strtold",
	"strtoll", "strtoul", "strtoull", "strxfrm", "wcpcpy", "wcpncpy",
	"wcscat", "wcschr", "wcscmp", "wcscpy", "wcscspn", "wcsftime",
	"wcslcat", "wcslcpy", "wcslen", "wcsncat", "wcsncmp", "wcsncpy",
	"wcsnlen", "wcsrchr", "wcsspn", "wcsstr", "wcstok", "wcstol",
	"wcstombs", "mbstowcs", "wmemchr", "wmemcmp", "wmemcpy", "wmemmove",
	"wmempcpy", "wmemset", "printf", "asprintf", "dprintf", "fprintf",
	"snprintf", "sprintf", "fwprintf", "swprintf", "wprintf", "vprintf",
	"vasprintf", "vdprintf", "vfprintf", "vsnprintf", "vsprintf",
	"vfwprintf", "vswprintf", "vwprintf", "scanf", "fscanf", "sscanf",
	"fwscanf", "swscanf", "wscanf", "vscanf", "vfscanf", "vsscanf",
	"vfwscanf", "vswscanf", "vwscanf", "fgets", "fread", "getdelim",
	"getline", "pread", "pread64", "preadv", "read", "readv", "recv",
	"recvfrom", "recvmsg",
};

/* Whether a frame is of such a function or of one of its variants with a
   reserved name: __memcpy_avx_unaligned_erms, __sprintf_chk, _IO_vsprintf. */
static bool
is_servant(const struct ex_frame *frame)
{
	static const char *const before[] = {"IO_", "isoc99_", "isoc23_",
	    "libc_"};
	const char *name = frame->function;
	size_t len, skipped;

	if (name == NULL)
		return false;
	skipped = strspn(name, "_");
	name += skipped;
	for (size_t i = 0; i < 4 && skipped > 0; i++)
		if (strncmp(name, before[i], strlen(before[i])) == 0)
			name += strlen(before[i]);
	len = strcspn(name, "_.");
	if (skipped == 0 && name[len] == '_' &&
	    strcmp(name + len, "_r") != 0 && strcmp(name + len, "_l") != 0)
		return false;
	for (size_t i = 0; i < sizeof(servants) / sizeof(servants[0]); i++)
		if (*servants[i] == *name &&
		    strncmp(name, servants[i], len) == 0 &&
		    servants[i][len] == '\0')
			return true;
	return false;
}

const struct ex_frame *
culprit_of(const struct ex_stack *stack)
{
	const struct ex_frame *culprit = NULL, *first = NULL;

	for (unsigned i = 0; i < stack->n; i++) {
		const struct ex_frame *frame = &stack->frame[i];

		if (frame->kernel)
			continue;
		if (first == NULL)
			first = frame;
		if (culprit_is_library(frame))
			continue;
		if (is_servant(frame))
			culprit = NULL;
		else if (culprit == NULL)
			culprit = frame;
	}
	if (culprit == NULL)
		culprit = first;
	return culprit == NULL && stack->n > 0 ? &stack->frame[0] : culprit;
}
