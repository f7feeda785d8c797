/*
 * narrow: a victim to be stepped, of 32-bit code and without a library: it
 * stops itself, then works without end.
 */
#define OWN	__attribute__((noinline))

typedef unsigned long long wide;

struct node {
	struct node *next;
	int key;
	wide value;
};

static struct node nodes[64], *list;
static unsigned char bytes[512];
static volatile wide sum;
static int numbers[32];

static int
call(int number, int a, int b)
{
	int result;

	__asm__ volatile("int $0x80" : "=a"(result) :
	    "a"(number), "b"(a), "c"(b) : "memory");
	return result;
}

OWN static void
insert(struct node *node)
{
	struct node **at = &list;

	while (*at != 0 && (*at)->key < node->key)
		at = &(*at)->next;
	node->next = *at;
	*at = node;
}

OWN static void
lists(int round)
{
	list = 0;
	for (int i = 0; i < 24; i++) {
		nodes[i].key = i * 37 % 64 + round;
		nodes[i].value = (wide)i << (round % 40);
		insert(&nodes[i]);
	}
	for (struct node *n = list; n != 0; n = n->next)
		sum += n->value * (unsigned)n->key;
}

OWN static int
smaller(const int *a, const int *b)
{
	return *a < *b;
}

OWN static int
larger(const int *a, const int *b)
{
	return *a > *b;
}

OWN static void
sort(int *a, int n, int (*before)(const int *, const int *))
{
	for (int i = 1; i < n; i++) {
		for (int k = i; k > 0 && before(&a[k], &a[k - 1]); k--) {
			int t = a[k];

			a[k] = a[k - 1];
			a[k - 1] = t;
		}
	}
}

OWN static int
cases(int n)
{
	switch (n % 8) {
	case 0:
		return numbers[3]++;
	case 1:
		return numbers[4] -= n;
	case 2:
		numbers[5] ^= n;
		return 2;
	case 3:
		numbers[6] <<= 1;
		return 3;
	case 4:
		bytes[n % 512] = (unsigned char)n;
		return 4;
	case 5:
		return numbers[7] = -numbers[7];
	case 6:
		return (int)(sum >>= 1);
	default:
		return numbers[8] | n;
	}
}

OWN static wide
divide(wide a, unsigned b)
{
	wide q = 0, r = 0;

	for (int i = 63; i >= 0; i--) {
		r = r << 1 | (a >> i & 1);
		if (r >= b) {
			r -= b;
			q |= 1ull << i;
		}
	}
	return q;
}

OWN static void
oddities(void)
{
	__asm__ volatile(
	    "	pusha\n	pushf\n	pushl %0\n	popl %0\n	pushw $3\n"
	    "	popw %%ax\n	push %%ds\n	pop %%eax\n	popf\n	popa\n"
	    "	pusha\n	mov %%esp,%%ebp\n	enter $16,$0\n	leave\n"
	    "	enter $16,$1\n	leave\n"
	    "	lea %1,%%edi\n	mov $20,%%ecx\n	rep stosl\n"
	    "	lea %1,%%esi\n	mov $20,%%ecx\n	rep movsb\n"
	    "	lea %1,%%esi\n	lodsb\n	movsw\n	scasb\n"
	    "	lea %1,%%ebx\n	mov $5,%%al\n	xlat\n"
	    "	mov %%ebx,(%%ebx)\n	mov (%%ebx),%%ebx\n"
	    "	incl %0\n	lock decl %0\n	xchg %%eax,%0\n"
	    "	lock xadd %%eax,%0\n	lock cmpxchg %%ecx,%0\n"
	    "	lock cmpxchg8b %1\n	mov $35,%%eax\n"
	    "	bts %%eax,%0\n	setc %0\n"
	    "	call 1f\n1:	pop %%eax\n	lea 2f-1b(%%eax),%%eax\n"
	    "	mov %%eax,%0\n	call *%0\n	jmp 3f\n2:	ret\n3:\n"
	    "	fninit\n	fildl %0\n	fstpt %1\n	fnstcw %0\n"
	    "	popa\n" : "+m"(numbers[0]), "+m"(bytes) : : "memory", "cc");
}

void _start(void);

void
_start(void)
{
	call(37, call(20, 0, 0), 19);	/* kill(getpid(), SIGSTOP) */
	for (int round = 0;; round++) {
		oddities();
		lists(round);
		sort(numbers, 12, round % 2 ? smaller : larger);
		for (int i = 0; i < 16; i++)
			sum += (wide)cases(i + round);
		sum += divide(sum, 10);
	}
}
