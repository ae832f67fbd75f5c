/*
 * The pages of an LMDB file, read without LMDB: it believes what its pages say, so one damaged byte
 * could make it read or write anywhere. After this walk each page of the newest snapshot is known
 * to be of its kind, in its place, inside the file and used once. What the records hold is not
 * looked at: each has its own checksum. The format is that of LMDB 0.9 on this machine's word size.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/base/bytes.h"
#include "agent/pipeline/store_file.h"

enum { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_OVERFLOW = 4, PAGE_META = 8 };
enum { NODE_BIG = 1, DB_INTEGER_KEY = 8, ONE_FILE = 0x4000 /* of the environment, beside it */ };
enum { PAGE_HEAD = 16, NODE_HEAD = 8, DEPTH_MOST = 16, FREE_DB = 0, MAIN_DB = 1, META_PAGES = 2 };
enum { PAGE_MOST = 32768, KEY_MOST = 511 };
#define META_MAGIC 0xBEEFC0DEu
#define META_VERSION 1u
#define NO_PAGE UINT64_MAX

struct page_head {
    uint64_t number;
    uint16_t pad, flags;
    union {
        struct {
            uint16_t lower, upper;
        };
        uint32_t pages; /* of an overflow run */
    };
};
struct db {
    uint32_t pad; /* page size, in the first db */
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};
struct meta {
    uint32_t magic, version;
    uint64_t address, map_bytes;
    struct db dbs[2];
    uint64_t last_page, txn;
};
struct node {
    uint16_t lo, hi, flags, key_len;
};
_Static_assert(sizeof(struct page_head) == PAGE_HEAD && sizeof(struct db) == 48 &&
                   sizeof(struct meta) == 136 && sizeof(struct node) == NODE_HEAD,
               "as in the file");

struct walk {
    const uint8_t *file;
    size_t bytes, page_bytes;
    uint64_t pages; /* last page + 1 */
    uint8_t *seen;  /* a bit per page */
    int kind;       /* FREE_DB or MAIN_DB */
    struct db found;
    uint64_t free_pages, txn;
    struct err *err;
};

static int bad(struct walk *w, uint64_t page, const char *what)
{
    return err_set(w->err, -EBADMSG, "page %llu: %s", (unsigned long long)page, what);
}

/* Marks `n` pages from `page` on; each may be used once. */
static int use(struct walk *w, uint64_t page, uint64_t n)
{
    if (page < META_PAGES || page >= w->pages || n > w->pages - page)
        return bad(w, page, "not a page of this file");
    for (uint64_t p = page; p < page + n; p++) {
        if (w->seen[p / 8] & (1u << p % 8))
            return bad(w, p, "used twice");
        w->seen[p / 8] |= (uint8_t)(1u << p % 8);
    }
    return 0;
}

/* The head of a page whose bytes are all there. */
static int head_of(struct walk *w, uint64_t page, uint64_t n, struct page_head *ret)
{
    if (page >= w->pages || n > w->pages - page || (page + n) * w->page_bytes > w->bytes)
        return bad(w, page, "behind the end of the file");
    memcpy(ret, w->file + page * w->page_bytes, sizeof(*ret));
    return ret->number == page ? 0 : bad(w, page, "has the number of another page");
}

static int compare(const struct walk *w, struct bytes a, struct bytes b)
{
    if (w->kind == FREE_DB) {
        uint64_t x, y;
        memcpy(&x, a.data, sizeof(x));
        memcpy(&y, b.data, sizeof(y));
        return x < y ? -1 : x > y;
    }
    const size_t n = a.len < b.len ? a.len : b.len;
    const int r = n ? memcmp(a.data, b.data, n) : 0;
    return r ? r : a.len < b.len ? -1 : a.len > b.len;
}

/* A record of the list of free pages: their number, then the pages, falling. */
static int free_record(struct walk *w, uint64_t page, struct bytes key, struct bytes data)
{
    uint64_t txn, n, p, before = UINT64_MAX;
    memcpy(&txn, key.data, sizeof(txn));
    if (data.len < sizeof(n) || txn > w->txn)
        return bad(w, page, "a record of free pages that cannot be");
    memcpy(&n, data.data, sizeof(n));
    if (n > data.len / sizeof(n) - 1)
        return bad(w, page, "a list of free pages that is cut");
    w->free_pages += n;
    for (uint64_t i = 1; i <= n; i++, before = p) {
        memcpy(&p, data.data + i * sizeof(p), sizeof(p));
        const int r = p < before ? use(w, p, 1) : bad(w, page, "free pages out of order");
        if (r < 0)
            return r;
    }
    return 0;
}

struct cut { /* a page being walked */
    uint64_t page;
    const uint8_t *bytes;
    struct page_head head;
    struct bytes low, high; /* its keys are from `low` on and below `high`; data NULL = no limit */
    size_t used;            /* bytes of the nodes so far */
    uint8_t map[PAGE_MOST / 16]; /* a bit for each two bytes that a node has */
};

/* Nodes lie side by side without a gap: LMDB moves them about by their sizes. */
static int claim(struct walk *w, struct cut *c, size_t at, size_t size)
{
    size = (size + 1) & ~(size_t)1;
    if (size > w->page_bytes - at)
        return bad(w, c->page, "a node outside of its page");
    for (size_t i = at / 2; i < (at + size) / 2; i++) {
        if (c->map[i / 8] & (1u << i % 8))
            return bad(w, c->page, "nodes one over the other");
        c->map[i / 8] |= (uint8_t)(1u << i % 8);
    }
    c->used += size;
    return 0;
}

/* Node `i`: its head and key; all of it is inside the page. */
static int node_at(struct walk *w, struct cut *c, unsigned i, struct node *ret,
                   struct bytes *ret_key)
{
    uint16_t at;
    memcpy(&at, c->bytes + PAGE_HEAD + 2 * i, sizeof(at));
    if (at < c->head.upper || at % 2 != 0 || at + (size_t)NODE_HEAD > w->page_bytes)
        return bad(w, c->page, "a node outside of its page");
    memcpy(ret, c->bytes + at, sizeof(*ret));
    *ret_key = bytes_of(c->bytes + at + NODE_HEAD, ret->key_len);
    size_t size = NODE_HEAD + (size_t)ret->key_len;
    if (c->head.flags == PAGE_LEAF)
        size += ret->flags & NODE_BIG ? sizeof(uint64_t) : (ret->lo | (size_t)ret->hi << 16);
    return claim(w, c, at, size);
}

static int check_key(struct walk *w, const struct cut *c, struct bytes key, struct bytes before)
{
    if (w->kind == FREE_DB && key.len != sizeof(uint64_t))
        return bad(w, c->page, "a key of another size");
    if (key.len == 0 || key.len > KEY_MOST)
        return bad(w, c->page, "a key of a size that cannot be");
    if ((before.data && compare(w, before, key) >= 0) ||
        (c->low.data && compare(w, c->low, key) > 0) ||
        (c->high.data && compare(w, key, c->high) >= 0))
        return bad(w, c->page, "keys out of order");
    return 0;
}

/* The data of a leaf's record, in the page itself or in a run of pages. */
static int record_data(struct walk *w, const struct cut *c, const struct node *n, const uint8_t *at,
                       struct bytes *ret)
{
    const size_t len = n->lo | (size_t)n->hi << 16;
    const uint64_t pages = (PAGE_HEAD - 1 + (uint64_t)len) / w->page_bytes + 1;
    struct page_head h;
    uint64_t run;
    *ret = bytes_of(at, len);
    if (n->flags & ~(unsigned)NODE_BIG)
        return bad(w, c->page, "a record of another kind");
    if (!(n->flags & NODE_BIG))
        return 0;
    memcpy(&run, at, sizeof(run));
    int r = use(w, run, pages);
    if (r == 0)
        r = head_of(w, run, pages, &h);
    if (r == 0 && (h.flags != PAGE_OVERFLOW || h.pages != pages))
        r = bad(w, run, "not the record that it should hold");
    if (r == 0)
        *ret = bytes_of(w->file + run * w->page_bytes + PAGE_HEAD, len);
    w->found.overflow_pages += pages;
    return r;
}

static int walk_leaf(struct walk *w, struct cut *c, unsigned nkeys)
{
    struct bytes before = {0};
    int r = 0;
    for (unsigned i = 0; i < nkeys && r == 0; i++) {
        struct node n;
        struct bytes key, data;
        r = node_at(w, c, i, &n, &key);
        if (r == 0)
            r = check_key(w, c, key, before);
        if (r == 0)
            r = record_data(w, c, &n, key.data + key.len, &data);
        if (r == 0 && w->kind == FREE_DB)
            r = free_record(w, c->page, key, data);
        before = key;
        w->found.entries++;
    }
    w->found.leaf_pages++;
    return r;
}

static int walk_page(struct walk *w, uint64_t page, unsigned depth, struct bytes low,
                     struct bytes high);

/* Each page holds the keys from its own on and below the next one's. The first key is not used: it
 * stands for all that is smaller. */
static int walk_branch(struct walk *w, struct cut *c, unsigned nkeys, unsigned depth)
{
    struct bytes low = c->low, before = {0};
    uint64_t child = NO_PAGE;
    int r = nkeys >= 2 ? 0 : bad(w, c->page, "a branch with one page");
    for (unsigned i = 0; i < nkeys && r == 0; i++) {
        struct node n;
        struct bytes key;
        r = node_at(w, c, i, &n, &key);
        if (r == 0 && i > 0)
            r = check_key(w, c, key, before);
        if (r == 0 && i > 0)
            r = walk_page(w, child, depth - 1, low, key);
        if (r == 0 && i > 0)
            low = before = key;
        child = r == 0 ? n.lo | (uint64_t)n.hi << 16 | (uint64_t)n.flags << 32 : NO_PAGE;
    }
    if (r == 0)
        r = walk_page(w, child, depth - 1, low, c->high);
    w->found.branch_pages++;
    return r;
}

static int walk_page(struct walk *w, uint64_t page, unsigned depth, struct bytes low,
                     struct bytes high)
{
    struct cut c = {.page = page, .low = low, .high = high};
    int r = use(w, page, 1);
    if (r == 0)
        r = head_of(w, page, 1, &c.head);
    if (r < 0)
        return r;
    c.bytes = w->file + page * w->page_bytes;
    if (c.head.flags != (depth == 1 ? PAGE_LEAF : PAGE_BRANCH))
        return bad(w, page, "not of the kind that it should be");
    if (c.head.lower < PAGE_HEAD || c.head.lower % 2 || c.head.lower > c.head.upper ||
        c.head.upper > w->page_bytes)
        return bad(w, page, "its head cannot be");
    const unsigned nkeys = (c.head.lower - PAGE_HEAD) / 2u;
    if (nkeys == 0)
        return bad(w, page, "empty");
    r = depth == 1 ? walk_leaf(w, &c, nkeys) : walk_branch(w, &c, nkeys, depth);
    return r == 0 && c.used != w->page_bytes - c.head.upper ? bad(w, page, "a gap between nodes")
                                                            : r;
}

static int walk_db(struct walk *w, int kind, const struct db *db)
{
    static const struct bytes any = {0};
    w->kind = kind;
    w->found = (struct db){0};
    const int flags = kind == FREE_DB ? db->flags & ~ONE_FILE : db->flags;
    if (flags != (kind == FREE_DB ? DB_INTEGER_KEY : 0) || db->depth > DEPTH_MOST ||
        (db->root == NO_PAGE) != (db->depth == 0))
        return bad(w, 0, "the description of its records cannot be");
    int r = db->depth ? walk_page(w, db->root, db->depth, any, any) : 0;
    if (r == 0 &&
        (w->found.branch_pages != db->branch_pages || w->found.leaf_pages != db->leaf_pages ||
         w->found.overflow_pages != db->overflow_pages || w->found.entries != db->entries))
        r = bad(w, 0, "does not have the pages or records that it should have");
    return r;
}

static int read_meta(struct walk *w, unsigned page, struct meta *ret)
{
    struct page_head h;
    int r = head_of(w, page, 1, &h);
    if (r < 0)
        return r;
    memcpy(ret, w->file + page * w->page_bytes + PAGE_HEAD, sizeof(*ret));
    if (h.flags != PAGE_META || ret->magic != META_MAGIC)
        return bad(w, page, "not of a queue file");
    if (ret->version != META_VERSION)
        return err_set(w->err, -EBADMSG, "LMDB format %u, expected %u", ret->version, META_VERSION);
    if (ret->dbs[FREE_DB].pad != w->page_bytes)
        return bad(w, page, "pages of another size");
    return 0;
}

/* The size of pages stands in the first one. */
static int page_size(struct walk *w)
{
    struct meta m;
    if (w->bytes < PAGE_HEAD + sizeof(m))
        return err_set(w->err, -EBADMSG, "%zu bytes are too few", w->bytes);
    memcpy(&m, w->file + PAGE_HEAD, sizeof(m));
    const uint32_t size = m.dbs[FREE_DB].pad;
    if (m.magic != META_MAGIC)
        return bad(w, 0, "not of a queue file");
    if (size < 512 || size > PAGE_MOST || (size & (size - 1)) != 0 || w->bytes / size < META_PAGES)
        return bad(w, 0, "the size of its pages cannot be");
    w->page_bytes = size;
    return 0;
}

static int walk_file(struct walk *w, struct store_verified *ret)
{
    struct meta metas[META_PAGES];
    w->pages = META_PAGES;
    int r = page_size(w);
    for (unsigned i = 0; i < META_PAGES && r == 0; i++)
        r = read_meta(w, i, &metas[i]);
    if (r < 0)
        return r;
    const struct meta *m = &metas[metas[1].txn > metas[0].txn];
    w->txn = m->txn;
    w->pages = m->last_page + 1;
    if (w->pages < META_PAGES || w->pages > w->bytes / w->page_bytes)
        return bad(w, m->last_page, "the last page is behind the end of the file");
    w->seen = calloc(w->pages / 8 + 1, 1);
    if (!w->seen)
        return err_set(w->err, -ENOMEM, "out of memory");
    r = walk_db(w, MAIN_DB, &m->dbs[MAIN_DB]);
    ret->entries = w->found.entries;
    if (r == 0)
        r = walk_db(w, FREE_DB, &m->dbs[FREE_DB]);
    ret->pages = w->pages;
    ret->free_pages = w->free_pages;
    free(w->seen);
    return r;
}

int store_verify(int fd, struct store_verified *ret, struct err *reterr)
{
    struct stat st;
    *ret = (struct store_verified){0};
    if (fstat(fd, &st) < 0)
        return err_set(reterr, -errno, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(reterr, -EBADMSG, "not a regular file");
    if (st.st_size == 0)
        return err_set(reterr, -EBADMSG, "empty");
    void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED)
        return err_set(reterr, -errno, "cannot map it: %s", strerror(errno));
    struct walk w = {.file = file, .bytes = (size_t)st.st_size, .err = reterr};
    const int r = walk_file(&w, ret);
    munmap(file, (size_t)st.st_size);
    return r;
}
