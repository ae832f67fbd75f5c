/* Recorded pages give the metrics that the reference collector made of them. Its order of metrics
 * is random. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include "prom_page.h"

#define FOLDER TEST_DATA "/golden/prometheus"

static struct buf *load(const char *name, const char *ext)
{
    char path[512];
    snprintf(path, sizeof(path), FOLDER "/%s%s", name, ext);
    _cleanup_fclose_ FILE *f = fopen(path, "r");
    assert_non_null(f);
    struct buf *b = buf_new(0);
    size_t n;
    do {
        assert_int_equal(buf_reserve(b, 65536), 0);
        n = fread(buf_tail(b), 1, 65536, f);
        buf_commit(b, n);
    } while (n > 0);
    return b;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One line for each metric: its resource, scope and itself; sorted. */
struct lines {
    char *items[1000];
    size_t n;
};

static void read_lines(struct buf *json, struct lines *l)
{
    json_error_t error;
    json_t *root = json_loadb((const char *)json->data, json->len, JSON_DECODE_INT_AS_REAL, &error);
    size_t i, j, k;
    json_t *rm, *sm, *metric;
    if (!root)
        fail_msg("%s in %.300s", error.text, (const char *)json->data);
    l->n = 0;
    json_array_foreach(json_object_get(root, "resourceMetrics"), i, rm)
    {
        json_array_foreach(json_object_get(rm, "scopeMetrics"), j, sm)
        {
            json_t *scope = json_object_get(sm, "scope"), *url = json_object_get(sm, "schemaUrl");
            json_array_foreach(json_object_get(sm, "metrics"), k, metric)
            {
                json_t *all =
                    json_pack("[O, O, O?, O]", json_object_get(rm, "resource"), scope, url, metric);
                assert_true(l->n < ARRAY_SIZE(l->items));
                l->items[l->n++] = json_dumps(all, JSON_SORT_KEYS);
                json_decref(all);
            }
        }
    }
    json_decref(root);
    qsort(l->items, l->n, sizeof(*l->items), compare);
}

static void free_lines(struct lines *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->items[i]);
}

static void check_page(const char *name)
{
    static struct lines got, want;
    const enum prom_format format = strstr(name, ".om") ? PROM_OPENMETRICS : PROM_TEXT;
    _cleanup_buf_ struct buf *text = load(name, ".txt"), *expected = load(name, ".json");
    struct prom_page page;
    struct err err = {0};
    prom_page_open(&page);
    if (prom_page_read(&page, format, buf_bytes(text), false, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    _cleanup_buf_ struct buf *json = prom_page_json(&page);
    read_lines(json, &got);
    read_lines(expected, &want);
    for (size_t i = 0; i < got.n && i < want.n; i++)
        if (strcmp(got.items[i], want.items[i]) != 0)
            fail_msg("%s:\n got %s\nwant %s", name, got.items[i], want.items[i]);
    assert_int_equal(got.n, want.n);
    assert_true(want.n > 0);
    free_lines(&got);
    free_lines(&want);
    prom_page_close(&page);
}

static void test_recorded_pages(void **state)
{
    unsigned pages = 0;
    struct dirent *e;
    DIR *d = opendir(FOLDER);
    (void)state;
    assert_non_null(d);
    while ((e = readdir(d))) {
        char *dot = strstr(e->d_name, ".json");
        if (!dot)
            continue;
        *dot = 0;
        check_page(e->d_name);
        pages++;
    }
    closedir(d);
    assert_true(pages >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recorded_pages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
