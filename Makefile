# watchctl and libwatchpoint: who touched this memory?
#
#   bmake            build; the command runs in place as watchctl/watchctl
#   bmake test       run every test, and again under sanitizers
#   bmake demo       watch an example program and show a few hits
#   bmake bench      measure the ratios that tests/bench promises
#   bmake install    DESTDIR= and prefix= as usual
#   bmake clean      remove what was built
#
# SANITIZE=yes does the same in obj.sanitize, with clang's ASan and UBSan.

SUBDIR=		lib watchctl examples tests

beforeinstall demo bench: all
clean: clean-sanitize

.include <bsd.subdir.mk>

RESULTS=	${.OBJDIR}/tests/results
.export RESULTS

test: .PHONY
	@${.MAKE} -j2 all
	@${.MAKE} -C ${.CURDIR}/tests -j2 run
.if !defined(SANITIZE)
	@${.MAKE} -j2 SANITIZE=yes all
	@${.MAKE} -C ${.CURDIR}/tests -j2 SANITIZE=yes run
.endif
	@sh ${.CURDIR}/tests/run.sh

# The tally is the last line, also after what bmake has to say of a failure.
.if make(test)
.BEGIN:
	@rm -f ${RESULTS}
.ERROR:
	@sh ${.CURDIR}/tests/run.sh | tail -n 1
.endif

demo: .PHONY
	@${.MAKE} -C ${.CURDIR}/examples demo

bench: .PHONY
	@${.MAKE} -C ${.CURDIR}/tests/bench bench

clean-sanitize: .PHONY
	rm -rf ${TOP}/obj.sanitize
