/* kernel_place: finds symbols of the kernel. */
#include "spec/kernel_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/kallsyms.h"
#include "proc/proc.h"
#include "os/slot.h"
#include "util/nearest.h"
#include "util/visible.h"

enum { LISTED_MAX = 3 };

struct kernel_search {
	const char *name;
	uint64_t addr[LISTED_MAX];	/* different ones of it, n, */
	size_t n;			/* as far as there is room */
	bool shown;		/* there are addresses other than 0 */
	bool data;		/* and of variables, too */
	/* where those are that each processor has a copy of; 0: not said */
	uint64_t per_cpu, per_cpu_end;
	struct nearest near;
	uint64_t above;		/* looked for: the next symbol above this, */
	uint64_t next;		/* which is at; 0: there is none */
};

static int
take(void *arg, uint64_t addr, char type, const char *name)
{
	struct kernel_search *s = arg;

	s->shown = s->shown || addr != 0;
	s->data = s->data || type == 'b' || type == 'd';
	nearest_offer(&s->near, name);
	if (strcmp(name, "__per_cpu_start") == 0)
		s->per_cpu = addr;
	if (strcmp(name, "__per_cpu_end") == 0)
		s->per_cpu_end = addr;
	if (strcmp(name, s->name) != 0)
		return 0;
	for (size_t i = 0; i < s->n && i < LISTED_MAX; i++)
		if (s->addr[i] == addr)
			return 0;
	if (s->n < LISTED_MAX)
		s->addr[s->n] = addr;
	s->n++;
	return 0;
}

static int
take_next(void *arg, uint64_t addr, char type, const char *name)
{
	struct kernel_search *s = arg;

	(void)type, (void)name;
	if (addr > s->above && (s->next == 0 || addr < s->next))
		s->next = addr;
	return 0;
}

static int
unreadable(const struct spec *spec, const char *kallsyms, int err,
    struct wp_cause *cause)
{
	struct buffer why = {0};

	buffer_printf(&why, "%s, which has the kernel's symbols, cannot be "
	    "read: %s; give the address", kallsyms, strerror(-err));
	err = spec_refuse(spec, buffer_text(&why), cause);
	buffer_free(&why);
	return err;
}

static int
hidden(const struct spec *spec, struct wp_cause *cause)
{
	const int restricted = wp_proc_setting("kptr_restrict");
	struct buffer why = {0};
	int err;

	buffer_printf(&why, "the kernel's addresses are hidden "
	    "(kernel.kptr_restrict is %d): %s", restricted,
	    geteuid() == 0 && restricted < 2 ? "though this is root, it lacks "
	    "CAP_SYSLOG of the machine: add it, or give the address" :
	    "run as root (sudo), with at most 1 there");
	err = spec_refuse(spec, buffer_text(&why), cause);
	buffer_free(&why);
	return err;
}

static int
unknown(const struct spec *spec, const struct kernel_search *s,
    struct wp_cause *cause)
{
	struct buffer text = {0}, near = {0}, shown = {0};
	int err;

	visible_put(&text, spec->text);
	visible_put(&shown, spec->symbol);
	if (!s->data)
		buffer_puts(&near, ", of which /proc/kallsyms has functions "
		    "alone (no CONFIG_KALLSYMS_ALL): give the address, or "
		    "kernel!FUNCTION+OFF");
	else if (s->near.n > 0) {
		buffer_puts(&near, ", nearest: ");
		nearest_put(&s->near, &near);
	}
	err = wp_cause_set(cause, WP_CAUSE_SYMBOL_UNKNOWN, buffer_text(&text),
	    buffer_text(&shown), "the kernel", buffer_text(&near));
	buffer_free(&text);
	buffer_free(&near);
	buffer_free(&shown);
	return err;
}

static int
ambiguous(const struct spec *spec, const struct kernel_search *s,
    struct wp_cause *cause)
{
	struct buffer text = {0}, shown = {0}, list = {0};
	int err;

	visible_put(&text, spec->text);
	visible_put(&shown, spec->symbol);
	for (size_t i = 0; i < s->n && i < LISTED_MAX; i++) {
		buffer_puts(&list, i > 0 ? ", " : "");
		buffer_hex(&list, s->addr[i]);
	}
	err = wp_cause_set(cause, WP_CAUSE_SYMBOL_AMBIGUOUS,
	    buffer_text(&text), s->n, buffer_text(&shown), buffer_text(&list),
	    "");
	buffer_free(&text);
	buffer_free(&shown);
	buffer_free(&list);
	return err;
}

/* The number of bytes to watch at addr if the SPEC has no length. */
static uint64_t
usual_length(const char *kallsyms, uint64_t addr)
{
	struct kernel_search s = {.above = addr};
	uint64_t len = spec_alignment(addr);

	(void)wp_kallsyms_each(kallsyms, take_next, &s);
	while (len > 1 && s.next != 0 && s.next - addr < len)
		len /= 2;
	return len;
}

/* Nothing is where these symbols say, but in each processor's copy: on x86-64
   their addresses count from 0, or are those of what the copies were made
   of. */
static bool
is_per_cpu(const struct kernel_search *s, uint64_t addr)
{
	const struct wp_region region = {.addr = addr, .len = 1};

	return !wp_slot_in_kernel(&region) ||
	    (addr >= s->per_cpu && addr < s->per_cpu_end);
}

static int
find_symbol(const struct spec *spec, const char *kallsyms,
    struct spec_place *place, struct wp_cause *cause)
{
	struct kernel_search s = {.name = spec->symbol};
	int err;

	nearest_begin(&s.near, spec->symbol);
	err = wp_kallsyms_each(kallsyms, take, &s);
	if (err < 0)
		err = unreadable(spec, kallsyms, err, cause);
	else if (!s.shown)
		err = hidden(spec, cause);
	else if (s.n != 1)
		err = s.n == 0 ? unknown(spec, &s, cause) :
		    ambiguous(spec, &s, cause);
	nearest_free(&s.near);
	if (err < 0)
		return err;
	if (is_per_cpu(&s, s.addr[0]))
		return spec_refuse(spec, "each processor has its own: give the "
		    "address of one", cause);
	place->addr = s.addr[0] + spec->off;
	if (place->addr < s.addr[0])
		return spec_refuse(spec, "the offset reaches beyond the last "
		    "address", cause);
	place->symbol = spec_place_name(spec->symbol, spec->off);
	return place->symbol == NULL ? wp_cause_set(cause,
	    WP_CAUSE_NO_MEMORY) : 0;
}

int
kernel_place_find(const struct spec *spec, const char *kallsyms,
    struct spec_place *place, struct wp_cause *cause)
{
	int err = 0;

	*place = (struct spec_place){.addr = spec->addr};
	if (spec->symbol != NULL)
		err = find_symbol(spec, kallsyms, place, cause);
	if (err < 0)
		return err;
	place->len = spec->len != 0 ? spec->len :
	    usual_length(kallsyms, place->addr);
	if (place->len - 1 <= UINT64_MAX - place->addr)
		return 0;
	free(place->symbol);
	place->symbol = NULL;
	return spec_refuse(spec, "the length reaches beyond the last address",
	    cause);
}
