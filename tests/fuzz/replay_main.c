/* replay DIRECTORY: feeds every file of a corpus to a fuzz target, without a fuzzer. */
#include <dirent.h>
#include <sys/stat.h>

#include "agent/base/buf.h"
#include "tests/fuzz/fuzz.h"

/* The input is an allocation of exactly its size, as libFuzzer gives it. */
static int replay(const char *path)
{
    struct stat st;
    _cleanup_fclose_ FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode))
        return 0;
    _cleanup_free_ uint8_t *data = malloc((size_t)st.st_size + !st.st_size);
    if (!data || fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
        return -1;
    LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
    return 1;
}

int main(int argc, char **argv)
{
    DIR *dir = argc > 1 ? opendir(argv[1]) : NULL;
    int inputs = 0;
    if (!dir) {
        fprintf(stderr, "replay DIRECTORY: cannot open %s\n", argc > 1 ? argv[1] : "nothing");
        return 2;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
        int r = replay(path);
        if (r < 0) {
            fprintf(stderr, "cannot read %s\n", path);
            closedir(dir);
            return 2;
        }
        inputs += r;
    }
    closedir(dir);
    printf("%d inputs\n", inputs);
    return inputs ? 0 : 1;
}
