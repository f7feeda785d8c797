/*
 * sweep: where an x86 instruction begins, given where it ends.
 */
#include "sweep.h"

#include <stdlib.h>

#include "module_private.h"
#include "symbol.h"

#define FAR		(1U << 18)	/* bytes swept at most: 10 ms */
#define NEAR		256		/* bytes swept where no start is known: by
					   then decoding has found its step */
#define FIRST_SLOTS	64

/* Answers by vaddr, in open addressing; slots is a power of two, and at least a
   quarter of them are free. */
struct places {
	struct place {
		uint64_t vaddr;
		struct ex_sweep before;		/* of what ends there */
		struct ex_decoded *code;	/* of what begins there */
		bool swept, decoded;	/* before, and code, are known */
		bool used;
	} *at;
	size_t n, slots;
};

static void
places_free(void *arg)
{
	struct places *places = arg;

	for (size_t i = 0; i < places->slots; i++)
		free(places->at[i].code);
	free(places->at);
	free(places);
}

/* The slot of vaddr, or the free one where it belongs. */
static struct place *
places_slot(const struct places *places, uint64_t vaddr)
{
	size_t i = (size_t)(vaddr * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	for (;; i++) {
		struct place *place = &places->at[i & (places->slots - 1)];

		if (!place->used || place->vaddr == vaddr)
			return place;
	}
}

static bool
places_grow(struct places *places)
{
	struct places more = { .n = places->n };

	more.slots = places->slots == 0 ? FIRST_SLOTS : places->slots * 2;
	more.at = calloc(more.slots, sizeof(*more.at));
	if (more.at == NULL)
		return false;
	for (size_t i = 0; i < places->slots; i++)
		if (places->at[i].used)
			*places_slot(&more, places->at[i].vaddr) =
			    places->at[i];
	free(places->at);
	*places = more;
	return true;
}

/* The module's answers, with room for one more; NULL: out of memory. */
static struct places *
places_of(struct ex_module *module)
{
	struct places *places = module->insn;

	if (places == NULL) {
		places = calloc(1, sizeof(*places));
		if (places == NULL)
			return NULL;
		module->insn = places;
		module->insn_free = places_free;
	}
	if (places->n >= places->slots / 4 * 3 && !places_grow(places))
		return NULL;
	return places;
}

/* A way through the code up to end. */
struct way {
	uint64_t at, end;	/* vaddrs: the next instruction's, the goal */
	uint8_t len;		/* of the last instruction; 0: none yet */
	bool broken;		/* there were bytes that are no instruction */
	uint16_t entered;	/* bit n: a branch goes to n bytes before the end */
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
		want = end - way.at < sizeof(code) ? end - way.at : sizeof(code);
		len = ex_module_bytes(module, way.at, code, want);
		if (len < want || !walk(&way, decoder, code, len))
			return none;
	}
	inside = (uint16_t)((1U << way.len) - 2);
	return (struct ex_sweep){ .len = way.len,
	    .certain = !way.broken && (way.entered & inside) == 0 };
}

static struct ex_sweep
sweep_from_start(struct ex_module *module, const ZydisDecoder *decoder,
    uint64_t vaddr)
{
	struct ex_sweep found = { 0 };
	uint64_t start, back;

	if (ex_symbol_function_start(module, vaddr - 1, &start) &&
	    start < vaddr && vaddr - start <= FAR)
		found = sweep(module, decoder, start, vaddr);
	for (back = NEAR; found.len == 0 && back > 0; back--) {
		if (back > vaddr)
			continue;
		found = sweep(module, decoder, vaddr - back, vaddr);
		found.certain = false;
	}
	return found;
}

/* What is known of vaddr; NULL: out of memory. */
static struct place *
place_of(struct ex_module *module, uint64_t vaddr)
{
	struct places *places = places_of(module);
	struct place *place;

	if (places == NULL)
		return NULL;
	place = places_slot(places, vaddr);
	if (!place->used) {
		*place = (struct place){ .vaddr = vaddr, .used = true };
		places->n++;
	}
	return place;
}

struct ex_sweep
ex_sweep_before(struct ex_module *module, const ZydisDecoder *decoder,
    uint64_t vaddr)
{
	struct place *place = place_of(module, vaddr);

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
	struct place *place = place_of(module, vaddr);

	if (place == NULL)
		return NULL;
	if (!place->decoded) {
		place->code = decode(module, decoder, vaddr);
		place->decoded = true;
	}
	return place->code;
}
