/* Makes system calls of a process fail as on failing disks and on machines without memory, decided by a seed.
 *
 * TRIALS_SEED     the seed
 * TRIALS_FAULTS   the faults, as one word of these letters:
 *   e  a read fails with EIO         s  a read returns fewer bytes       i  a read is interrupted (EINTR)
 *   p  a read fails once and then succeeds                               w  a write fails with ENOSPC
 *   t  threads cannot be started after the first few                     c  calls are counted only
 * TRIALS_PATH     reads fail only in files whose name contains this
 * TRIALS_WRITES   the same for writes; without it, in all files except stdout and stderr
 * TRIALS_EVERY    one call in this many fails
 * TRIALS_FROM     calls before this one succeed
 * TRIALS_AT       only this call fails
 * TRIALS_COUNT    a file for the numbers of affected reads and writes, a line each, at the end
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_ulong calls;
static atomic_ulong writes;
static atomic_ulong threads;

static unsigned long number(const char *name, unsigned long otherwise) {
    const char *text = getenv(name);
    return text ? strtoul(text, NULL, 10) : otherwise;
}

static int has(char fault) {
    const char *faults = getenv("TRIALS_FAULTS");
    return faults && strchr(faults, fault) != NULL;
}

/* Whether this call fails. */
static int is_chosen(atomic_ulong *of) {
    unsigned long call = atomic_fetch_add(of, 1);
    if (call < number("TRIALS_FROM", 0) || has('c')) return 0;
    if (getenv("TRIALS_AT")) return call == number("TRIALS_AT", 0);
    unsigned long at = call + number("TRIALS_SEED", 1) * 0x9E3779B97F4A7C15ul;
    at = (at ^ (at >> 30)) * 0xBF58476D1CE4E5B9ul;
    at = (at ^ (at >> 27)) * 0x94D049BB133111EBul;
    at ^= at >> 31;
    return at % number("TRIALS_EVERY", 10) == 0;
}

static int is_affected(int fd, const char *wanted) {
    char link[64], path[4096];
    if (!wanted) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strstr(path, wanted) != NULL;
}

/* The result of a read: 0 normal, -1 fails with errno set, 1 shortened. */
static int fault_of_read(int fd, size_t count) {
    static _Thread_local int just_failed;
    if (count < 2 || !is_affected(fd, getenv("TRIALS_PATH")) || !is_chosen(&calls)) { just_failed = 0; return 0; }
    if (has('i') && !just_failed) { just_failed = 1; errno = EINTR; return -1; }
    if (has('p') && !just_failed) { just_failed = 1; errno = EIO; return -1; }
    just_failed = 0;
    if (has('e')) { errno = EIO; return -1; }
    return has('s') ? 1 : 0;
}

#define READ(name, arguments, passed)                                              \
    ssize_t name arguments {                                                       \
        static ssize_t(*real) arguments;                                           \
        if (!real) real = (ssize_t(*) arguments)dlsym(RTLD_NEXT, #name);           \
        int fault = fault_of_read(fd, count);                                      \
        if (fault < 0) return -1;                                                  \
        if (fault > 0) count = 1 + count / 3;                                      \
        return real passed;                                                        \
    }

READ(pread64, (int fd, void *buffer, size_t count, off64_t offset), (fd, buffer, count, offset))
READ(pread, (int fd, void *buffer, size_t count, off_t offset), (fd, buffer, count, offset))
READ(read, (int fd, void *buffer, size_t count), (fd, buffer, count))

static int fails_to_write(int fd) {
    const char *wanted = getenv("TRIALS_WRITES");
    if (fd <= 2 || !(has('w') || has('c')) || (wanted && !is_affected(fd, wanted))) return 0;
    if (!is_chosen(&writes)) return 0;
    errno = ENOSPC;
    return 1;
}

ssize_t write(int fd, const void *buffer, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return fails_to_write(fd) ? -1 : real(fd, buffer, count);
}

ssize_t pwrite64(int fd, const void *buffer, size_t count, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    return fails_to_write(fd) ? -1 : real(fd, buffer, count, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real) real = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
    if (has('t') && atomic_fetch_add(&threads, 1) >= number("TRIALS_EVERY", 1) - 1) return EAGAIN;
    return real(thread, attributes, start, argument);
}

__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("TRIALS_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%lu\n%lu\n", atomic_load(&calls), atomic_load(&writes));
    fclose(file);
}
