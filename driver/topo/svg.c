// SPDX-License-Identifier: Apache-2.0
/*
 * A picture for people: root complexes as boxes, switches in them, GPUs above the NICs, cards as
 * frames, a colour per rail, lines between best pairs.  Sizes come from the texts by a width per
 * character that no common sans-serif font exceeds on average, so that nothing overlaps.
 */
#include "base/mem.h"
#include "base/str.h"
#include "topo/nest.h"
#include "topo/output.h"

enum {
	CHAR = 8, /* width of a character, pixels at font size 12 */
	LINE = 16, /* height of a line of text */
	PAD = 10, /* inside boxes and between them */
	WIRE = 34, /* room for lines between GPUs and NICs */
	PAGE = 1500, /* where rows of roots end */
	MAX_LEGEND = 64, /* rails of the legend */
	LEGEND = 88, /* width of a rail in the legend */
	MAX_TEXT = 40, /* characters of a line of text; the rest is in the tool tip */
};

struct box {
	const struct nest *nest;
	int x, y, width, height;
	struct strlist lines; /* of a device: its texts; of others: the heading */
	struct box *children;
	size_t n;
};

struct svg {
	const struct inventory *inv;
	const struct box **gpus, **nics; /* where each device stands; NULL: nowhere */
	struct buf *out;
};

static const char *rail_colour(int rail)
{
	static const char *const colours[] = { "#0072b2", "#e69f00", "#009e73", "#cc79a7",
					       "#56b4e9", "#d55e00", "#7a5195", "#8c8c00" };

	return rail < 0 ? "#9aa0a6" : colours[(size_t)rail % ARRAY_SIZE(colours)];
}

static void escape(struct buf *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		switch (*p) {
		case '<':
			buf_str(out, "&lt;");
			break;
		case '>':
			buf_str(out, "&gt;");
			break;
		case '&':
			buf_str(out, "&amp;");
			break;
		case '"':
			buf_str(out, "&quot;");
			break;
		default:
			/* XML has no other control characters than white space. */
			buf_add(out, (unsigned char)*p < 0x20 ? " " : p, 1);
		}
	}
}

/* Characters, not bytes: bytes that continue one do not count. */
static int text_length(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* Takes "text"; what is too long ends in "…". */
static void add_line(struct box *box, char *text)
{
	int n = 0;
	char *p = text;

	for (; *p && n < MAX_TEXT; n++)
		for (p++; ((unsigned char)*p & 0xc0) == 0x80; p++)
			;
	if (*p) {
		*p = '\0';
		strlist_take(&box->lines, xasprintf("%s…", text));
		free(text);
	} else {
		strlist_take(&box->lines, text);
	}
}

/* --- what stands in the boxes --- */

static void add_link(const struct topo_link *link, struct box *box)
{
	_cleanup_free_ char *text = topo_link_text(link);

	if (text)
		add_line(box, xasprintf("PCIe %s%s", text,
					link->degraded == TRI_YES ? " degraded" : ""));
}

static void fill_gpu(const struct topo_gpu *gpu, struct box *box)
{
	add_line(box, xstrdup(gpu->name));
	add_line(box, gpu->model ? xstrdup(gpu->model)
				 : xasprintf("%s %04x", gpu->vendor, gpu->device_id));
	if (gpu->rail_group >= 0)
		add_line(box, xasprintf("rail group %d", gpu->rail_group));
	if (gpu->partition)
		add_line(box, xasprintf("divided (%s)", gpu->partition));
	add_link(&gpu->link, box);
}

static void fill_nic(const struct topo_nic *nic, struct box *box)
{
	const struct topo_port *port = nic->n_ports ? &nic->ports[0] : NULL;
	struct buf text = { 0 };

	add_line(box, xstrdup(nic->name));
	buf_printf(&text, "%s%s%s", nic->netdev ? nic->netdev : "",
		   nic->netdev && nic->rdma_device ? " · " : "",
		   nic->rdma_device ? nic->rdma_device : "");
	add_line(box, buf_take(&text));
	if (nic->rail >= 0)
		buf_printf(&text, "rail %d", nic->rail);
	else
		buf_str(&text, nic->role == ROLE_RAIL	   ? "rail unknown"
			       : nic->role == ROLE_UNKNOWN ? "role unknown"
							   : topo_role_name(nic->role));
	if (port && port->rate_gbps >= 0)
		buf_printf(&text, " · %d Gb/s", port->rate_gbps);
	if (port && port->state && !streq(port->state, "ACTIVE"))
		buf_printf(&text, " · %s", port->state);
	if (nic->num_vfs > 0)
		buf_printf(&text, " · %d VFs", nic->num_vfs);
	add_line(box, buf_take(&text));
	add_link(&nic->link, box);
}

static void fill_card(const struct inventory *inv, const struct topo_card *card, struct box *box)
{
	const char *own = inv->nics[card->members[0]].function_pcie_root;

	add_line(box, xasprintf("%s%s", card->id, card->atomic ? " (handed out whole)" : ""));
	if (card->dma_bus_id)
		add_line(box, xasprintf("DMA by %s", card->dma_bus_id));
	if (card->dma_bus_id && own)
		add_line(box, xasprintf("PFs on %s", own));
}

static void fill(const struct inventory *inv, struct box *box)
{
	const struct nest *nest = box->nest;
	int numa;

	switch (nest->kind) {
	case NEST_TOP:
		break;
	case NEST_ROOT:
		numa = nest->root ? nest_root_numa(inv, nest->root) : TOPO_UNKNOWN;
		add_line(box, nest->root ? xstrdup(nest->root) : xstrdup("PCI root unknown"));
		if (numa >= 0)
			add_line(box, xasprintf("NUMA %d", numa));
		break;
	case NEST_BRIDGE:
		add_line(box, xasprintf("switch %s", nest->bridge->bus_id));
		break;
	case NEST_CARD:
		fill_card(inv, &inv->cards[nest->index], box);
		break;
	case NEST_GPU:
		fill_gpu(&inv->gpus[nest->index], box);
		break;
	case NEST_NIC:
		fill_nic(&inv->nics[nest->index], box);
		break;
	}
}

/* --- layout --- */

static int max(int a, int b)
{
	return a > b ? a : b;
}

static bool has_gpu(const struct nest *nest)
{
	if (nest->kind == NEST_GPU)
		return true;
	for (size_t i = 0; i < nest->n; i++)
		if (has_gpu(nest->children[i]))
			return true;
	return false;
}

static int head_height(const struct box *box)
{
	return box->lines.n ? (int)box->lines.n * LINE + PAD : 0;
}

/* The heading of a card stands below its PFs, out of the way of lines. */
static bool head_is_below(const struct box *box)
{
	return box->nest->kind == NEST_CARD;
}

static int text_width(const struct box *box)
{
	int width = 0;

	for (size_t i = 0; i < box->lines.n; i++)
		width = max(width, text_length(box->lines.items[i]) * CHAR);
	return width;
}

/*
 * One row of children, those with a GPU or those without.  Positions are relative to the parent;
 * *y moves below the row.
 */
static void place_row(struct box *box, bool gpus, int *y)
{
	int x = PAD, tallest = 0;

	for (size_t i = 0; i < box->n; i++) {
		struct box *child = &box->children[i];

		if (has_gpu(child->nest) != gpus)
			continue;
		child->x = x;
		child->y = *y;
		x += child->width + PAD;
		tallest = max(tallest, child->height);
	}
	box->width = max(box->width, x);
	if (tallest)
		*y += tallest + PAD;
}

static void centre_row(struct box *box, bool gpus)
{
	int right = 0;

	for (size_t i = 0; i < box->n; i++)
		if (has_gpu(box->children[i].nest) == gpus)
			right = max(right, box->children[i].x + box->children[i].width + PAD);
	for (size_t i = 0; i < box->n; i++)
		if (has_gpu(box->children[i].nest) == gpus)
			box->children[i].x += (box->width - right) / 2;
}

/* How long rows of roots are, so that all are about equally long. */
static int row_width(const struct box *box)
{
	int total = 0;

	for (size_t i = 0; i < box->n; i++)
		total += box->children[i].width + 2 * PAD;
	return total / (total / PAGE + 1);
}

static void place_roots(struct box *box)
{
	int x = PAD, y = PAD, tallest = 0, width = row_width(box);

	for (size_t i = 0; i < box->n; i++) {
		struct box *child = &box->children[i];

		if (x > PAD && (x + child->width / 2 > width || x + child->width + PAD > PAGE)) {
			x = PAD;
			y += tallest + 2 * PAD;
			tallest = 0;
		}
		child->x = x;
		child->y = y;
		x += child->width + 2 * PAD;
		tallest = max(tallest, child->height);
		box->width = max(box->width, x);
	}
	box->height = y + tallest + PAD;
}

static void lay_out(const struct inventory *inv, const struct nest *nest, struct box *box)
{
	bool both[2] = { false, false };
	int y;

	*box = (struct box){ .nest = nest, .n = nest->n };
	fill(inv, box);
	box->children = xcalloc(nest->n, sizeof(*box->children));
	for (size_t i = 0; i < nest->n; i++) {
		lay_out(inv, nest->children[i], &box->children[i]);
		both[has_gpu(nest->children[i])] = true;
	}
	if (nest->kind == NEST_TOP) {
		place_roots(box);
		return;
	}
	box->width = text_width(box) + 2 * PAD + (nest->kind >= NEST_GPU ? PAD : 0);
	y = head_is_below(box) ? PAD : head_height(box) + (nest->kind >= NEST_GPU ? PAD : 0);
	place_row(box, true, &y);
	if (both[0] && both[1])
		y += WIRE - PAD;
	place_row(box, false, &y);
	centre_row(box, true);
	centre_row(box, false);
	box->height = y + (head_is_below(box) ? head_height(box) - PAD / 2 : 0);
}

/* From positions relative to the parent to positions on the page. */
static void shift(struct box *box, int x, int y)
{
	box->x += x;
	box->y += y;
	for (size_t i = 0; i < box->n; i++)
		shift(&box->children[i], box->x, box->y);
}

static void box_done(struct box *box)
{
	for (size_t i = 0; i < box->n; i++)
		box_done(&box->children[i]);
	free(box->children);
	strlist_done(&box->lines);
}

/* --- drawing --- */

static bool is_warned(const struct inventory *inv, const char *name, const char *bus_id,
		      struct buf *title)
{
	bool warned = false;

	for (size_t i = 0; i < inv->n_warnings; i++) {
		const struct topo_warning *w = &inv->warnings[i];

		if (!streq(w->object, name) && !streq(w->object, bus_id))
			continue;
		warned = true;
		buf_printf(title, "\n%s: %s", w->code, w->message);
	}
	return warned;
}

static void draw_rect(const struct svg *s, const struct box *box, const char *class,
		      const char *style)
{
	buf_printf(s->out,
		   "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
		   "rx=\"5\"%s%s%s/>\n",
		   class, box->x, box->y, box->width, box->height, style ? " style=\"" : "",
		   style ? style : "", style ? "\"" : "");
}

static void draw_texts(const struct svg *s, const struct box *box, int indent)
{
	int y = head_is_below(box) ? box->y + box->height - head_height(box) : box->y;

	for (size_t i = 0; i < box->lines.n; i++) {
		buf_printf(s->out, "<text x=\"%d\" y=\"%d\"%s>", box->x + PAD + indent,
			   y + PAD + (int)i * LINE + 6, i ? "" : " class=\"name\"");
		escape(s->out, box->lines.items[i]);
		buf_str(s->out, "</text>\n");
	}
}

static void draw_device(const struct svg *s, const struct box *box)
{
	bool is_gpu = box->nest->kind == NEST_GPU;
	const struct topo_gpu *gpu = is_gpu ? &s->inv->gpus[box->nest->index] : NULL;
	const struct topo_nic *nic = is_gpu ? NULL : &s->inv->nics[box->nest->index];
	const char *name = is_gpu ? gpu->name : nic->name;
	const char *bus_id = is_gpu ? gpu->bus_id : nic->bus_id;
	struct buf title = { 0 };
	bool warned;

	buf_printf(&title, "%s %s", name, bus_id);
	warned = is_warned(s->inv, name, bus_id, &title);
	buf_str(s->out, "<g><title>");
	escape(s->out, title.data);
	buf_str(s->out, "</title>\n");
	buf_done(&title);
	draw_rect(s, box, is_gpu ? "gpu" : "nic", NULL);
	if (!is_gpu)
		buf_printf(s->out,
			   "<rect x=\"%d\" y=\"%d\" width=\"7\" height=\"%d\" rx=\"3\" "
			   "fill=\"%s\"/>\n",
			   box->x, box->y, box->height, rail_colour(nic->rail));
	draw_texts(s, box, PAD);
	if (warned)
		buf_printf(s->out, "<text class=\"warning\" x=\"%d\" y=\"%d\">⚠</text>\n",
			   box->x + box->width - 18, box->y + box->height - 6);
	buf_str(s->out, "</g>\n");
}

static void draw(struct svg *s, const struct box *box)
{
	static const char *const classes[] = { "", "root", "switch", "card" };

	switch (box->nest->kind) {
	case NEST_TOP:
		break;
	case NEST_GPU:
		s->gpus[box->nest->index] = box;
		draw_device(s, box);
		break;
	case NEST_NIC:
		s->nics[box->nest->index] = box;
		draw_device(s, box);
		break;
	default:
		draw_rect(s, box, classes[box->nest->kind], NULL);
		draw_texts(s, box, 0);
	}
	for (size_t i = 0; i < box->n; i++)
		draw(s, &box->children[i]);
}

/* From the lower edge of the GPU to the upper edge of the NIC, coloured as the rail. */
static void draw_pairs(const struct svg *s)
{
	for (size_t i = 0; i < s->inv->n_pairs; i++) {
		const struct topo_pair *pair = &s->inv->pairs[i];
		const struct box *gpu = s->gpus[pair->gpu], *nic = s->nics[pair->nic];

		if (!pair->best || !gpu || !nic)
			continue;
		buf_printf(s->out,
			   "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"%s\"%s>"
			   "<title>%s – %s: %s</title></line>\n",
			   gpu->x + gpu->width / 2, gpu->y + gpu->height, nic->x + nic->width / 2,
			   nic->y, rail_colour(s->inv->nics[pair->nic].rail),
			   pair->path > PATH_PXB ? " stroke-dasharray=\"6 4\"" : "",
			   s->inv->gpus[pair->gpu].name, s->inv->nics[pair->nic].name,
			   path_class_name(pair->path));
	}
}

/* The same, said of many, is one line: their tool tips have it, too. */
static struct strlist warning_lines(const struct inventory *inv)
{
	struct strlist lines = { 0 };

	for (size_t i = 0; i < inv->n_warnings; i++) {
		const struct topo_warning *w = &inv->warnings[i];
		size_t before = 0, others = 0;

		for (size_t k = 0; k < inv->n_warnings; k++) {
			before += k < i && topo_warnings_alike(&inv->warnings[k], w);
			others += k > i && topo_warnings_alike(&inv->warnings[k], w);
		}
		if (before)
			continue;
		strlist_take(&lines,
			     others ? xasprintf("⚠ %s: %s and %zu more: %s", w->code, w->object,
						others, w->message)
				    : xasprintf("⚠ %s: %s: %s", w->code, w->object, w->message));
	}
	return lines;
}

static void draw_warnings(const struct svg *s, const struct strlist *lines, int y)
{
	for (size_t i = 0; i < lines->n; i++) {
		buf_printf(s->out, "<text class=\"warning\" x=\"%d\" y=\"%d\">", PAD,
			   y + (int)i * LINE);
		escape(s->out, lines->items[i]);
		buf_str(s->out, "</text>\n");
	}
}

/* The rails that are there, of which some between them may be missing. */
static int legend_width(const struct inventory *inv)
{
	return (inv->rail_count < MAX_LEGEND ? inv->rail_count : MAX_LEGEND) * LEGEND + 2 * PAD;
}

static void draw_legend(const struct svg *s, int y)
{
	int x = PAD, n = 0, highest = inventory_highest_rail(s->inv);

	for (int rail = 0; rail <= highest && n < MAX_LEGEND; rail++) {
		if (!inventory_has_rail(s->inv, rail))
			continue;
		n++;
		buf_printf(s->out,
			   "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>"
			   "<text x=\"%d\" y=\"%d\">rail %d</text>\n",
			   x, y - 10, rail_colour(rail), x + 16, y, rail);
		x += LEGEND;
	}
	buf_printf(s->out,
		   "<text x=\"%d\" y=\"%d\">lines: best NICs of a GPU; dashed lines: not below one "
		   "switch</text>\n",
		   PAD, y + LINE);
}

char *topo_to_svg(const struct inventory *inv)
{
	static const char style[] =
		"text{font:12px sans-serif;fill:#202124}.name{font-weight:bold}"
		".title{font:bold 15px sans-serif}.warning{fill:#b45309}"
		".root{fill:#f8f9fa;stroke:#5f6368;stroke-width:1.5}"
		".switch{fill:#eceff1;stroke:#90a4ae}"
		".card{fill:none;stroke:#5f6368;stroke-dasharray:3 3}"
		".gpu{fill:#e6f4ea;stroke:#34a853}.nic{fill:#fff;stroke:#9aa0a6}"
		"line{stroke-width:2.5;opacity:.85}";
	_cleanup_free_ const struct box **gpus = xcalloc(inv->n_gpus, sizeof(struct box *));
	_cleanup_free_ const struct box **nics = xcalloc(inv->n_nics, sizeof(struct box *));
	_cleanup_free_ char *summary = nest_summary(inv);
	_cleanup_free_ char *head =
		xasprintf("%s: %s", inv->node_name ? inv->node_name : "node", summary);
	struct nest *top = nest_build(inv, false);
	struct buf out = { 0 };
	struct svg s = { inv, gpus, nics, &out };
	struct strlist warnings = warning_lines(inv);
	struct box page;
	int y, width, height;

	lay_out(inv, top, &page);
	shift(&page, 0, 3 * LINE);
	y = page.y + page.height + 3 * LINE;
	width = max(max(page.width, text_length(head) * 10), 500) + PAD;
	width = max(width, legend_width(inv));
	for (size_t i = 0; i < warnings.n; i++)
		width = max(width, (text_length(warnings.items[i]) + 2) * CHAR);
	height = y + (int)warnings.n * LINE + LINE;
	buf_printf(&out,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		   "viewBox=\"0 0 %d %d\">\n<style>%s</style>\n"
		   "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		   "<text class=\"title\" x=\"%d\" y=\"%d\">",
		   width, height, width, height, style, PAD, 2 * LINE);
	escape(&out, head);
	buf_str(&out, "</text>\n");
	draw(&s, &page);
	draw_pairs(&s);
	draw_legend(&s, y - 2 * LINE);
	draw_warnings(&s, &warnings, y + LINE / 2);
	buf_str(&out, "</svg>\n");
	box_done(&page);
	nest_free(top);
	strlist_done(&warnings);
	return buf_take(&out);
}
