/* Fault injection for one process: preloaded before the C library, it makes flushes to disk fail, wait or take long, and
 * moves the wall clock. The faults are a file of four numbers that the test writes (libc_faults.py) and this maps. In the
 * folder LIBC_DISK it keeps of each file what the last flush has brought to disk: what a power cut leaves. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FAILS, DELAY_MICROSECONDS, CLOCK_NANOSECONDS, SYNCS, NUMBERS };
enum { POLL_MICROSECONDS = 1000, PATH_BYTES = 4096, NAME_BYTES = 256, FILES = 16 };
static const int64_t SECOND = 1000000000;

static int64_t nothing[NUMBERS];
static volatile int64_t *faults = nothing;
static int (*real_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    real_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("LIBC_FAULTS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof nothing, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) faults = mapped;
    close(file);
}

/* Ranges of a file that were written since its last flush, and those that a failed flush has lost. */
struct range { off_t place; off_t end; };
struct ranges { size_t count, room; struct range *all; };
static struct written { char name[NAME_BYTES]; struct ranges unflushed, lost; } files[FILES];
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;

static struct written *written_of(int file) {
    char link[64], path[PATH_BYTES];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    const char *slash = strrchr(path, '/');
    if (!getenv("LIBC_DISK") || !slash || !strstr(slash, ".db")) return NULL;
    for (int number = 0; number < FILES; number++) {
        if (!files[number].name[0]) strncpy(files[number].name, slash + 1, NAME_BYTES - 1);
        if (!strcmp(files[number].name, slash + 1)) return &files[number];
    }
    abort();
}

static void add(struct ranges *ranges, struct range one) {
    if (ranges->count == ranges->room) {
        ranges->room = 2 * ranges->room + 64;
        ranges->all = realloc(ranges->all, ranges->room * sizeof one);
    }
    ranges->all[ranges->count++] = one;
}

static void note(int file, off_t place, ssize_t length) {
    int error = errno;
    struct written *known = length > 0 ? written_of(file) : NULL;
    if (known) {
        pthread_mutex_lock(&files_lock);
        struct range one = {place, place + length};
        add(&known->unflushed, one);
        for (size_t number = known->lost.count; number-- > 0;) {
            struct range old = known->lost.all[number];
            if (one.place <= old.place && old.end <= one.end) known->lost.all[number] = known->lost.all[--known->lost.count];
        }
        pthread_mutex_unlock(&files_lock);
    }
    errno = error;
}

/* The file as the disk has it now. It is read through the caller's own descriptor: closing another one would end the
 * process's locks on it. */
static void copy_to_disk(int file, struct written *known) {
    char path[PATH_BYTES], partial[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", getenv("LIBC_DISK"), known->name);
    snprintf(partial, sizeof partial, "%s/partial", getenv("LIBC_DISK"));
    struct stat found;
    if (fstat(file, &found)) abort();
    char *octets = calloc(1, found.st_size + 1);
    ssize_t size = pread(file, octets, found.st_size, 0);
    int before = open(path, O_RDONLY);
    for (size_t number = 0; number < known->lost.count; number++) {
        struct range one = known->lost.all[number];
        if (one.end > size) continue;
        memset(octets + one.place, 0, one.end - one.place);
        if (before >= 0 && pread(before, octets + one.place, one.end - one.place, one.place) < 0) abort();
    }
    if (before >= 0) close(before);
    int disk = open(partial, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (ssize_t place = 0, done; place < size; place += done)
        if ((done = syscall(SYS_write, disk, octets + place, size - place)) <= 0) abort();
    close(disk);
    free(octets);
    if (rename(partial, path)) abort();
}

/* A flush writes what the kernel calls dirty. What a failed one has not written is called clean all the same. */
static void keep(int file, int has_failed) {
    struct written *known = written_of(file);
    if (!known) return;
    pthread_mutex_lock(&files_lock);
    for (size_t number = 0; has_failed && number < known->unflushed.count; number++)
        add(&known->lost, known->unflushed.all[number]);
    known->unflushed.count = 0;
    if (!has_failed) copy_to_disk(file, known);
    pthread_mutex_unlock(&files_lock);
}

ssize_t pwrite64(int file, const void *octets, size_t length, off64_t place) {
    ssize_t written = syscall(SYS_pwrite64, file, octets, length, place);
    note(file, place, written);
    return written;
}

ssize_t pwrite(int file, const void *octets, size_t length, off_t place) { return pwrite64(file, octets, length, place); }

ssize_t write(int file, const void *octets, size_t length) {
    ssize_t written = syscall(SYS_write, file, octets, length);
    note(file, lseek(file, 0, SEEK_CUR) - written, written);
    return written;
}

static int flush(long call, int file) {
    __sync_fetch_and_add(&faults[SYNCS], 1);
    /* Read again in each round: a delay of hours ends when the test says so. */
    for (int64_t waited = 0; waited < faults[DELAY_MICROSECONDS]; waited += POLL_MICROSECONDS) usleep(POLL_MICROSECONDS);
    if (faults[FAILS]) {
        keep(file, 1);
        errno = EIO;
        return -1;
    }
    int result = (int)syscall(call, file);
    if (result == 0) keep(file, 0);
    return result;
}

int fsync(int file) { return flush(SYS_fsync, file); }

int fdatasync(int file) { return flush(SYS_fdatasync, file); }

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!real_clock) return (int)syscall(SYS_clock_gettime, clock, time);
    int result = real_clock(clock, time);
    if (result == 0 && clock == CLOCK_REALTIME && faults[CLOCK_NANOSECONDS]) {
        int64_t now = time->tv_sec * SECOND + time->tv_nsec + faults[CLOCK_NANOSECONDS];
        time->tv_sec = now / SECOND;
        time->tv_nsec = now % SECOND;
    }
    return result;
}
