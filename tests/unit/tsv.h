/* Reading the tab-separated files of tests/golden. */
#ifndef MOTEL_TESTS_TSV_H
#define MOTEL_TESTS_TSV_H

#include <stdio.h>
#include <string.h>

#define TSV_COLUMNS 10

/* C escapes (\\ \n \t \r \xNN), in place. */
static inline char *tsv_unescape(char *s)
{
    static const char names[] = "n\nt\tr\r";
    char *out = s;
    for (char *p = s; *p; p++) {
        unsigned code;
        if (*p != '\\') {
            *out++ = *p;
        } else if (*++p == 'x' && sscanf(p + 1, "%2x", &code) == 1) {
            *out++ = (char)code;
            p += 2;
        } else {
            const char *name = strchr(names, *p);
            *out++ = name ? name[1] : *p;
        }
    }
    *out = 0;
    return s;
}

/* Cuts a line at its tabs; the number of columns. */
static inline size_t tsv_split(char *line, char **columns)
{
    size_t n = 0;
    line[strcspn(line, "\n")] = 0;
    while (n < TSV_COLUMNS && (columns[n] = strsep(&line, "\t")))
        n++;
    return n;
}

#endif
