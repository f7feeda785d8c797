/*
 * masked: a victim to be stepped: it stops itself, then loads and stores under
 * masks of all kinds, of which some leave nothing, without end.
 */
#include <signal.h>
#include <stdint.h>

static uint8_t bytes[256] __attribute__((aligned(64)));

#define WITH(mask, instruction, p)					\
	__asm__ volatile("kmovq %0,%%k1\n\t" instruction : :		\
	    "r"((uint64_t)(mask)), "r"(p) : "xmm0", "memory")

static void
avx512(uint64_t mask, uint8_t *p)
{
	WITH(mask, "vmovdqu8 (%1),%%xmm0%{%%k1%}", p);
	WITH(mask, "vmovdqu8 (%1),%%ymm0%{%%k1%}%{z%}", p);
	WITH(mask, "vmovdqu8 %%zmm0,(%1)%{%%k1%}", p);
	WITH(mask, "vmovdqu8 %%xmm0,(%1)%{%%k1%}", p);
	WITH(mask, "vmovdqu16 %%ymm0,(%1)%{%%k1%}", p);
	WITH(mask, "vmovdqu32 (%1),%%zmm0%{%%k1%}%{z%}", p);
	WITH(mask, "vmovups %%zmm0,(%1)%{%%k1%}", p);
	WITH(mask, "vmovdqu64 %%ymm0,(%1)%{%%k1%}", p);
	WITH(mask, "vpaddd (%1),%%zmm0,%%zmm0%{%%k1%}", p);
	WITH(mask, "vpaddd (%1)%{1to16%},%%zmm0,%%zmm0%{%%k1%}", p);
	WITH(mask, "vpcmpeqb (%1),%%ymm0,%%k2%{%%k1%}", p);
	WITH(mask, "vpcompressd %%zmm0,(%1)%{%%k1%}", p);
	WITH(mask, "vpexpandd (%1),%%zmm0%{%%k1%}", p);
	WITH(mask, "vpmovdb %%zmm0,(%1)%{%%k1%}", p);
}

/* The mask is the highest bit of each element. */
static void
avx(uint64_t mask, uint32_t stored, uint8_t *p)
{
	uint32_t element[8];

	for (unsigned i = 0; i < 8; i++)
		element[i] = mask >> i & 1 ? UINT32_MAX : 0;
	__asm__ volatile("vmovdqu %1,%%ymm1\n\t"
	    "vbroadcastss %2,%%ymm0\n\t"
	    "vmaskmovps %%ymm0,%%ymm1,(%0)\n\t"
	    "vmaskmovpd %%xmm0,%%xmm1,16(%0)\n\t"
	    "vmaskmovps (%0),%%ymm1,%%ymm2\n\t"
	    "vmaskmovpd 8(%0),%%xmm1,%%xmm2\n\tvzeroupper" : :
	    "r"(p), "m"(element), "m"(stored) :
	    "xmm0", "xmm1", "xmm2", "memory");
}

int
main(void)
{
	static const uint64_t masks[] = {
		0, 1, UINT64_MAX, 0x80, 0xff00, 0xaaaaaaaaaaaaaaaa,
		0xf0f0f0f0f0f0f0f0, 0x8000000000000000, 0x7fffffff,
	};
	uint64_t random = 1;

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37);
	(void)raise(SIGSTOP);
	for (unsigned i = 0;; i++) {
		const uint64_t mask = i % 2 != 0 ? random :
		    masks[i / 2 % (sizeof(masks) / sizeof(masks[0]))];
		uint8_t *p = bytes + random % 128;

		random = random * 6364136223846793005u + 1442695040888963407u;
		if (__builtin_cpu_supports("avx512bw") &&
		    __builtin_cpu_supports("avx512vl"))
			avx512(mask, p);
		if (__builtin_cpu_supports("avx"))
			avx(mask, i, p);
	}
}
