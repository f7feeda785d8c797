/*
 * plug: a shared library for victims, with a constructor that writes its own
 * variable.
 */
volatile long plug_state;
volatile long plug_table[4];
__thread volatile long plug_local = 5;

static __attribute__((constructor)) void
plug_prepare(void)
{
	plug_state = 42;
	plug_table[2] = 7;
}

void
plug_write(volatile long *at)
{
	*at = plug_state++;
}
