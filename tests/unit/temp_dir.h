/* A folder of one test, with files directly in it. */
#ifndef TEMP_DIR_H
#define TEMP_DIR_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define TEMP_DIR_BYTES 200

static inline void temp_dir_make(char dir[TEMP_DIR_BYTES])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, TEMP_DIR_BYTES, "%s/motel-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
}

static inline void temp_dir_remove(const char *dir)
{
    char path[TEMP_DIR_BYTES + 260];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        if (e->d_name[0] != '.')
            remove(path);
    }
    if (d)
        closedir(d);
    remove(dir);
}

static inline void temp_file_put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

#endif
