// The first process of a box, and the one that starts its commands where an engine does not put them in a cgroup of their own. It needs
// nothing of the root file system. code.txt has its machine code, which build.sh makes.
//
// Without arguments, it has the kernel reap processes whose parents are gone, writes one byte, and ends when its standard input ends.
//
// With a token, it writes one byte, by which the host knows that it is there, reads what to run from standard input, and runs it. The
// host moves it to a cgroup before. It reads no more than that, so that what follows is the program's. If the program cannot be started,
// it writes the token, and one byte: 0 for the folder, otherwise the number of the error.

typedef unsigned long word;

#ifdef __x86_64__
enum { READ = 0, WRITE = 1, SIGACTION = 13, EXECVE = 59, CHDIR = 80, PRCTL = 157, EXIT = 231 };
__asm__(".section .entry,\"ax\"\n.globl _start\n_start:\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
static long call(long number, const void *a, const void *b, long c, long d) {
	register long r10 __asm__("r10") = d;
	long result;
	const void *first = a;
	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(first), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
	return result;
}
#else
enum { READ = 63, WRITE = 64, SIGACTION = 134, EXECVE = 221, CHDIR = 49, PRCTL = 167, EXIT = 94 };
__asm__(".section .entry,\"ax\"\n.globl _start\n_start:\n mov x0, sp\n bl begin\n");
static long call(long number, const void *a, const void *b, long c, long d) {
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = (long)a;
	register long x1 __asm__("x1") = (long)b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}
#endif

enum { ENOENT = 2, EINTR = 4, EACCES = 13, ENOTDIR = 20, SIGCHLD = 17, SET_DUMPABLE = 4, LONGEST = 4096 };

static _Noreturn void leave(long code) {
	for (;;) call(EXIT, (void *)code, 0, 0, 0);
}

// take reads exactly as many bytes, or ends.
static void take(char *to, word n) {
	while (n > 0) {
		long got = call(READ, 0, to, n, 0);
		if (got == -EINTR) continue;
		if (got <= 0) leave(125);
		to += got;
		n -= got;
	}
}

static word length(const char *s) {
	word n = 0;
	while (s[n]) n++;
	return n;
}

// find executes a program of a folder in PATH.
static long find(char **args, char **env) {
	char path[LONGEST];
	long problem = -ENOENT;
	word name = length(args[0]);
	for (char **e = env; *e; e++) {
		const char *v = *e;
		if (v[0] != 'P' || v[1] != 'A' || v[2] != 'T' || v[3] != 'H' || v[4] != '=') continue;
		for (v += 5; *v;) {
			word n = 0;
			for (; v[n] && v[n] != ':'; n++)
				if (n < LONGEST) path[n] = v[n];
			if (n > 0 && n + name + 2 <= LONGEST) {
				path[n] = '/';
				for (word i = 0; i <= name; i++) path[n + 1 + i] = args[0][i];
				long result = call(EXECVE, path, args, (long)env, 0);
				if (result == -EACCES) problem = result;
				else if (result != -ENOENT && result != -ENOTDIR) return result;
			}
			v += n;
			if (*v) v++;
		}
	}
	return problem;
}

__attribute__((used)) _Noreturn void begin(word *sp) {
	char byte = 0;
	if (sp[0] < 2) {
		word ignore[4] = {1, 0, 0, 0};
		call(SIGACTION, (void *)SIGCHLD, ignore, 0, 8);
		call(WRITE, (void *)1, &byte, 1, 0);
		long n;
		do n = call(READ, 0, &byte, 1, 0);
		while (n > 0 || n == -EINTR);
		leave(0);
	}
	char *token = (char *)sp[2];
	unsigned head[3]; // bytes, arguments, variables
	call(PRCTL, (void *)SET_DUMPABLE, 0, 0, 0); // its file, which cannot be read, already has the kernel do so, and that from the first moment
	call(WRITE, (void *)1, &byte, 1, 0);
	take((char *)head, sizeof head);
	char text[head[0]];
	char *list[head[1] + head[2] + 2];
	take(text, head[0]);
	char *at = text;
	char *folder = at;
	char **next = list;
	for (word i = 0; i < head[1] + head[2]; i++) {
		at += length(at) + 1;
		if (i == head[1]) *next++ = 0;
		*next++ = at;
	}
	if (head[2] == 0) *next++ = 0;
	*next = 0;
	char **env = list + head[1] + 1;
	if (call(CHDIR, folder, 0, 0, 0) == 0) {
		long result = -1;
		for (char *c = list[0];; c++) {
			if (*c == '/') {
				result = call(EXECVE, list[0], list, (long)env, 0);
				break;
			}
			if (!*c) {
				result = find(list, env);
				break;
			}
		}
		byte = -result;
	}
	char said[256];
	word n = length(token);
	if (n > 200) n = 200;
	for (word i = 0; i < n; i++) said[i] = token[i];
	said[n] = byte;
	call(WRITE, (void *)1, said, n + 1, 0);
	leave(127);
}
