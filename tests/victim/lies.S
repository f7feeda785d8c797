# lies: variables with debug information that no compiler writes.

	.text
	nop

	.data
	.globl	self, alias, array, endless, beyond
	.macro	variable name
	.type	\name, @object
	.size	\name, 8
\name:	.quad	0
	.endm
	variable self
	variable alias
	variable array
	variable endless
	variable beyond

	.section .debug_abbrev, "", @progbits
	.macro	abbrev code, tag, children, attributes:vararg
	.uleb128 \code, \tag
	.byte	\children
	.uleb128 \attributes, 0, 0
	.endm
	abbrev 1, 0x11, 1, 0x13, 0x0b			# unit: language
	abbrev 2, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x18	# variable
	abbrev 3, 0x13, 1, 0x03, 0x08, 0x0b, 0x0b	# struct: name, size
	abbrev 4, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x07	# member
	abbrev 5, 0x16, 0, 0x03, 0x08, 0x49, 0x13	# typedef
	abbrev 6, 0x01, 1, 0x49, 0x13			# array
	abbrev 7, 0x21, 0, 0x37, 0x07			# range: count
	abbrev 8, 0x24, 0, 0x03, 0x08, 0x3e, 0x0b, 0x0b, 0x0b	# base type
	abbrev 9, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x0d, 0x0b, 0x6b, 0x07 # bits
	.byte	0

	.section .debug_info, "", @progbits
	.macro	name text
	.asciz	"\text"
	.endm
	.macro	ref label
	.long	\label - .Lunit
	.endm
	.macro	die_variable symbol, type
	.uleb128 2
	name	\symbol
	ref	\type
	.uleb128 9
	.byte	3
	.quad	\symbol
	.endm
	.macro	die_member text, type, offset
	.uleb128 4
	name	\text
	ref	\type
	.quad	\offset
	.endm
	.macro	die_bits text, size, bit
	.uleb128 9
	name	\text
	ref	.Llong
	.byte	\size
	.quad	\bit
	.endm
.Lunit:	.long	.Lend - .Lversion
.Lversion:
	.short	5
	.byte	1, 8
	.long	.debug_abbrev
	.uleb128 1
	.byte	0x0c
	die_variable self, .Lself
	die_variable alias, .Lalias
	die_variable array, .Larray
	die_variable endless, .Lendless
	die_variable beyond, .Lbeyond
.Llong:	.uleb128 8
	name	"long"
	.byte	5, 8
.Lself:	.uleb128 3
	name	"self"
	.byte	8
	die_member me, .Lself, 0
	.byte	0
.Lalias: .uleb128 5
	name	"alias"
	ref	.Lother
.Lother: .uleb128 5
	name	"other"
	ref	.Lalias
.Larray: .uleb128 6
	ref	.Larray
	.uleb128 7
	.quad	1
	.byte	0
.Lendless: .uleb128 6
	ref	.Llong
	.uleb128 7
	.quad	0x4000000000000001
	.byte	0
.Lbeyond: .uleb128 3
	name	"beyond"
	.byte	8
	die_member after, .Llong, 8
	die_member across, .Llong, 1
	die_member below, .Llong, 0xfffffffffffffff8
	die_member wrapped, .Llong, 0x7fffffffffffffff
	die_bits hundred, 100, 0
	die_bits outside, 8, 60
	die_bits far, 8, 0xffffffffffffffff
	die_bits none, 0, 0
	.byte	0
	.byte	0
.Lend:
