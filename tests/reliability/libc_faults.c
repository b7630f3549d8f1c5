/* Fault injection for one process: preloaded before the C library, it makes flushes to disk fail, wait or take long, and
 * moves the wall clock. The faults are a file of four numbers that the test writes (libc_faults.py) and this maps. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FAILS, DELAY_MICROSECONDS, CLOCK_NANOSECONDS, SYNCS, NUMBERS };
enum { POLL_MICROSECONDS = 1000 };
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

static int flush(long call, int file) {
    __sync_fetch_and_add(&faults[SYNCS], 1);
    /* Read again in each round: a delay of hours ends when the test says so. */
    for (int64_t waited = 0; waited < faults[DELAY_MICROSECONDS]; waited += POLL_MICROSECONDS) usleep(POLL_MICROSECONDS);
    if (faults[FAILS]) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(call, file);
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
