/*
 * sweep: where an x86 instruction begins, given where it ends.
 */
#include "insn/sweep.h"

#include <stdlib.h>

#include "insn/flow.h"
#include "module/module_private.h"
#include "symbol/symbol.h"
#include "base/table.h"

#define FAR		(1U << 18)	/* bytes of a function at most: 10 ms */
#define BEYOND		4096		/* bytes of it beyond the place asked
					   about, when its end is not known */
#define NEAR		256		/* bytes swept where no start is known:
					   by then decoding has found its
					   step */

/* The findings about an address. */
struct swept_place {
	struct ex_sweep before;		/* of what ends there */
	struct ex_decoded *code;	/* of what begins there */
	bool swept, decoded;	/* before, and code, are known */
};

struct swept_places {
	struct ex_table at;		/* by vaddr and mode */
	struct ex_flow *flow;		/* of the function last asked about;
					   NULL: none */
	struct ex_jumps *jumps;		/* of functions that have any */
};

/* The same bytes may be code of two modes. */
static uint64_t
key_of(const ZydisDecoder *decoder, uint64_t vaddr)
{
	return decoder->machine_mode == ZYDIS_MACHINE_MODE_LONG_64 ? vaddr :
	    vaddr | UINT64_C(1) << 63;
}

static void
place_free(void *place)
{
	free(((struct swept_place *)place)->code);
	free(place);
}

static void
places_release(void *arg)
{
	struct swept_places *places = arg;
	struct ex_jumps *jumps;

	ex_table_free(&places->at, place_free);
	ex_flow_free(places->flow);
	while ((jumps = places->jumps) != NULL) {
		places->jumps = jumps->next;
		free(jumps);
	}
}

/* The findings about a module; NULL: out of memory. */
static struct swept_places *
places_of(struct ex_module *module)
{
	bool is_new;

	return ex_module_cache(module, EX_CACHE_INSN,
	    sizeof(struct swept_places),
	    places_release, &is_new);
}

/* A way through the code up to end. */
struct way {
	uint64_t at, end;	/* vaddrs: the next instruction's, the goal */
	uint8_t len;		/* of the last instruction; 0: none yet */
	bool broken;		/* there were bytes that are hardly code */
	uint16_t entered;	/* bit n: a branch goes to n bytes before the
				   end */
};

static void
note_branch(struct way *way, const ZydisDecodedInstruction *insn)
{
	uint64_t before_end;

	if (!insn->raw.imm[0].is_relative)
		return;
	before_end = way->end - (way->at + insn->raw.imm[0].value.u);
	if (before_end < ZYDIS_MAX_INSTRUCTION_LENGTH)
		way->entered |= (uint16_t)(1U << before_end);
}

/* Whether this is an instruction that data often looks like and that programs
   never use. */
static bool
is_unlikely(const uint8_t *code, const ZydisDecodedInstruction *insn)
{
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_INTERRUPT:
		return true;
	default:
		return (code[0] == 0 && code[1] == 0) ||
		    (insn->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) != 0 ||
		    insn->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
	}
}

/* Decode on through code; the last bytes are left unless they are the way's
   last.  False: the way's end lies inside an instruction. */
static bool
walk(struct way *way, const ZydisDecoder *decoder, const uint8_t *code,
    size_t len)
{
	const bool last = len == way->end - way->at;
	const size_t margin = last ? 0 : ZYDIS_MAX_INSTRUCTION_LENGTH;
	ZydisDecodedInstruction insn;
	ZyanStatus status;

	while (len > margin) {
		status = ZydisDecoderDecodeInstruction(decoder, NULL, code, len,
		    &insn);
		if (status == ZYDIS_STATUS_NO_MORE_DATA)
			return false;
		if (ZYAN_SUCCESS(status)) {
			way->len = insn.length;
			way->broken |= is_unlikely(code, &insn);
		} else {
			way->len = 1;
			way->broken = true;
		}
		way->at += way->len;
		code += way->len;
		len -= way->len;
		if (ZYAN_SUCCESS(status))
			note_branch(way, &insn);
	}
	return true;
}

/* Decode from start to end; .len is 0 when that is not where one ends. */
static struct ex_sweep
sweep(struct ex_module *module, const ZydisDecoder *decoder, uint64_t start,
    uint64_t end)
{
	const struct ex_sweep none = { 0 };
	struct way way = { .at = start, .end = end };
	uint8_t code[4096];
	size_t len, want;
	uint16_t inside;

	while (way.at < end) {
		want = end - way.at < sizeof(code) ? end - way.at :
		    sizeof(code);
		len = ex_module_bytes(module, way.at, code, want);
		if (len < want || !walk(&way, decoder, code, len))
			return none;
	}
	inside = (uint16_t)((1U << way.len) - 2);
	return (struct ex_sweep){ .len = way.len,
	    .certain = !way.broken && (way.entered & inside) == 0 };
}

/* The flow of the function; the one last asked for is kept.  NULL: none. */
static const struct ex_flow *
flow_of(struct ex_module *module, const ZydisDecoder *decoder,
    const struct ex_function *function, uint64_t vaddr)
{
	struct swept_places *places = places_of(module);
	const uint64_t far = function->start + FAR;
	uint64_t end = function->end;

	if (places == NULL)
		return NULL;
	if (places->flow != NULL &&
	    ex_flow_is(places->flow, decoder, function->start) &&
	    function->sized)
		return places->flow;
	if (!function->sized)
		end = vaddr + BEYOND;
	ex_flow_free(places->flow);
	places->flow = ex_flow_new(module, decoder, function->start,
	    end < far ? end : far);
	return places->flow;
}

/* The function's jumps; NULL: none, or out of memory. */
static const struct ex_jumps *
jumps_of(struct swept_places *places, const struct ex_flow *flow,
    uint64_t start)
{
	const uint32_t *offsets;
	const size_t n = ex_flow_jumps(flow, &offsets);
	struct ex_jumps *jumps;

	if (n == 0)
		return NULL;
	for (jumps = places->jumps; jumps != NULL; jumps = jumps->next) {
		if (jumps->start == start && jumps->n == n)
			return jumps;
	}
	jumps = malloc(sizeof(*jumps) + n * sizeof(jumps->vaddr[0]));
	if (jumps == NULL)
		return NULL;
	jumps->start = start;
	jumps->n = n;
	for (size_t i = 0; i < n; i++)
		jumps->vaddr[i] = start + offsets[i];
	jumps->next = places->jumps;
	places->jumps = jumps;
	return jumps;
}

/*
 * In a function: the instruction that its flow reaches; else decoded from where
 * the flow was last seen.  That code is reached in ways that cannot be followed
 * (or is no code), and is believed if the function is known to go so far.
 */
static struct ex_sweep
sweep_function(struct ex_module *module, const ZydisDecoder *decoder,
    const struct ex_function *function, uint64_t vaddr)
{
	const struct ex_flow *flow = flow_of(module, decoder, function, vaddr);
	struct ex_sweep found = { 0 };
	uint64_t last;
	unsigned n;

	if (flow == NULL)
		return found;
	found.len = (uint8_t)ex_flow_before(flow, vaddr, &n);
	found.certain = n == 1;
	last = ex_flow_last(flow, vaddr);
	if (n == 0 && last < vaddr) {
		found = sweep(module, decoder, last, vaddr);
		found.certain = found.certain && function->sized;
	}
	found.last = vaddr >= function->end;
	found.jumps = jumps_of(places_of(module), flow, function->start);
	return found;
}

static struct ex_sweep
sweep_from_start(struct ex_module *module, const ZydisDecoder *decoder,
    uint64_t vaddr)
{
	struct ex_sweep found = { 0 };
	struct ex_function function;
	uint64_t back;

	if (ex_symbol_function(module, vaddr - 1, &function) &&
	    function.start < vaddr && vaddr - function.start <= FAR)
		found = sweep_function(module, decoder, &function, vaddr);
	for (back = NEAR; found.len == 0 && back > 0; back--) {
		if (back > vaddr)
			continue;
		found = sweep(module, decoder, vaddr - back, vaddr);
		found.certain = false;
	}
	return found;
}

/* The findings for a key; NULL: out of memory. */
static struct swept_place *
place_of(struct ex_module *module, uint64_t key)
{
	struct swept_places *places = places_of(module);
	struct swept_place *place;

	if (places == NULL)
		return NULL;
	place = ex_table_get(&places->at, key);
	if (place == NULL && ex_table_reserve(&places->at, 1) &&
	    (place = calloc(1, sizeof(*place))) != NULL)
		ex_table_put(&places->at, key, place);
	return place;
}

bool
ex_sweep_decoder(bool narrow, ZydisDecoder *decoder)
{
	return ZYAN_SUCCESS(ZydisDecoderInit(decoder,
	    narrow ? ZYDIS_MACHINE_MODE_LONG_COMPAT_32 :
	    ZYDIS_MACHINE_MODE_LONG_64,
	    narrow ? ZYDIS_STACK_WIDTH_32 : ZYDIS_STACK_WIDTH_64));
}

struct ex_sweep
ex_sweep_before(struct ex_module *module, const ZydisDecoder *decoder,
    uint64_t vaddr)
{
	struct swept_place *place = place_of(module, key_of(decoder, vaddr));

	if (place == NULL)
		return sweep_from_start(module, decoder, vaddr);
	if (!place->swept) {
		place->before = sweep_from_start(module, decoder, vaddr);
		place->swept = true;
	}
	return place->before;
}

static struct ex_decoded *
decode(struct ex_module *module, const ZydisDecoder *decoder, uint64_t vaddr)
{
	uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
	size_t n = ex_module_bytes(module, vaddr, bytes, sizeof(bytes));
	struct ex_decoded *code = calloc(1, sizeof(*code));

	if (code != NULL && n > 0 && ZYAN_SUCCESS(ZydisDecoderDecodeFull(
	    decoder, bytes, n, &code->insn, code->op)))
		return code;
	free(code);
	return NULL;
}

struct ex_decoded *
ex_sweep_at(struct ex_module *module, const ZydisDecoder *decoder,
    uint64_t vaddr)
{
	struct swept_place *place = place_of(module, key_of(decoder, vaddr));

	if (place == NULL)
		return NULL;
	if (!place->decoded) {
		place->code = decode(module, decoder, vaddr);
		place->decoded = true;
	}
	return place->code;
}
