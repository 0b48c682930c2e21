# What simulated.tsv says, as awk -v show=...: "table", the tables of doc/scaling.md; "picture", doc/img/scaling.svg; "page", web/charts/simulated.js;
# "broken", what is worse than it must be, a line each; "missing", what must be and is not simulated yet.
BEGIN {
    FS = "\t"
    kinds = split("surfsara fast", kind_of, " ")
    title["surfsara"] = "SURFsara's node"
    title["fast"] = "fast node"
    rate["surfsara"] = 79
    rate["fast"] = 536
}
/^#/ || NF == 0 { next }
$1 == "kind" { next }
{
    key = $1 SUBSEP $2 SUBSEP $3 SUBSEP $4 SUBSEP $5 SUBSEP $6 SUBSEP $7
    ideal[key] = $8; alone[key] = $9; step[key] = $10; wait[key] = $11
    if (!($3 in known)) { known[$3] = 1; sizes[++count] = $3 + 0 }
}
# The share of the speed that each node keeps; -1: not simulated.
function kept(kind, per_node, nodes, tree, jitter, slow, wire,    key) {
    key = kind SUBSEP per_node SUBSEP nodes SUBSEP tree SUBSEP jitter SUBSEP slow SUBSEP wire
    return key in step ? 100 * ideal[key] / step[key] : -1
}
function plain(kind, per_node, nodes) { return kept(kind, per_node, nodes, "full", 0, 0, "fp32") }
# With nothing but the slowest node's computing.
function kept_alone(kind, per_node, nodes, jitter, slow,    key) {
    key = kind SUBSEP per_node SUBSEP nodes SUBSEP "full" SUBSEP jitter SUBSEP slow SUBSEP "fp32"
    return key in step ? 100 * ideal[key] / alone[key] : -1
}
function words(x) { return x < 0 ? "-" : sprintf("%.1f", x) }
function sort_sizes(    i, j, x) {
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && sizes[j] < sizes[j - 1]; j--) { x = sizes[j]; sizes[j] = sizes[j - 1]; sizes[j - 1] = x }
}
function table(    i, k, p, n, kind) {
    print "| nodes | SURFsara's node, 1 rank | 2 ranks | fast node, 1 rank | 2 ranks |"
    print "|---:|---:|---:|---:|---:|"
    for (i = 1; i <= count; i++) {
        n = sizes[i]
        print "| " n " | " words(plain("surfsara", 1, n)) " | " words(plain("surfsara", 2, n)) " | " words(plain("fast", 1, n)) " | " words(plain("fast", 2, n)) " |"
    }
    print ""
    print "| node | ranks | nodes | 2:1 tree | bf16 | 2 % jitter | alone | 5 % jitter | alone | one node 10 % slow | alone |"
    print "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for (k = 1; k <= kinds; k++)
        for (p = 1; p <= 2; p++)
            for (i = 1; i <= count; i++) {
                kind = kind_of[k]
                n = sizes[i]
                if (kept(kind, p, n, "full", 0.02, 0, "fp32") < 0)
                    continue
                print "| " title[kind] " | " p " | " n " | " words(kept(kind, p, n, "2:1", 0, 0, "fp32")) " | " words(kept(kind, p, n, "full", 0, 0, "bf16")) " | " \
                    words(kept(kind, p, n, "full", 0.02, 0, "fp32")) " | " words(kept_alone(kind, p, n, 0.02, 0)) " | " \
                    words(kept(kind, p, n, "full", 0.05, 0, "fp32")) " | " words(kept_alone(kind, p, n, 0.05, 0)) " | " \
                    words(kept(kind, p, n, "full", 0, 0.1, "fp32")) " | " words(kept_alone(kind, p, n, 0, 0.1)) " |"
            }
}
# ---- the picture: nodes by their logarithm, efficiency from LEAST to 100 %
function x_of(n) { return LEFT + (log(n) - log(sizes[1])) / (log(sizes[count]) - log(sizes[1])) * (RIGHT - LEFT) }
function y_of(e) { return BOTTOM - (e - LEAST) / (100 - LEAST) * (BOTTOM - TOP) }
function text(x, y, anchor, fill, what) {
    printf "<text font-family=\"sans-serif\" font-size=\"12\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", x, y, anchor, fill, what
}
function line(kind, per_node, jitter, color,    i, e, points, dots) {
    for (i = 1; i <= count; i++) {
        e = kept(kind, per_node, sizes[i], "full", jitter, 0, "fp32")
        if (e < 0)
            continue
        points = points sprintf(" %.1f,%.1f", x_of(sizes[i]), y_of(e))
        dots = dots sprintf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n", x_of(sizes[i]), y_of(e), color)
    }
    if (points == "")
        return
    printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s points=\"%s\"/>\n%s", color, (jitter > 0 ? " stroke-dasharray=\"5 4\"" : ""), substr(points, 2), dots
}
function picture(    i, e, k, p, y) {
    LEFT = 48; RIGHT = 470; TOP = 24; BOTTOM = 288; LEAST = 90
    color["surfsara", 1] = "#1f77b4"; color["surfsara", 2] = "#17becf"; color["fast", 1] = "#d62728"; color["fast", 2] = "#ff7f0e"
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 680 316\" width=\"680\" height=\"316\">"
    print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    text(LEFT, 14, "start", "black", "simulated efficiency, %")
    for (e = LEAST; e <= 100; e += 2) {
        printf "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ccc\"/>\n", LEFT, RIGHT, y_of(e), y_of(e)
        text(LEFT - 6, y_of(e) + 4, "end", "black", e)
    }
    for (i = 1; i <= count; i++)
        if (log(sizes[i]) / log(2) == int(log(sizes[i]) / log(2) + 0.001))
            text(x_of(sizes[i]), BOTTOM + 18, "middle", "black", sizes[i])
    text(RIGHT + 8, BOTTOM + 18, "start", "black", "nodes")
    for (k = 1; k <= kinds; k++)
        for (p = 1; p <= 2; p++) {
            line(kind_of[k], p, 0, color[kind_of[k], p])
            line(kind_of[k], p, 0.02, color[kind_of[k], p])
            y = 40 + 18 * (2 * k + p - 3)
            text(RIGHT + 16, y, "start", color[kind_of[k], p], title[kind_of[k]] ", " p (p == 1 ? " rank" : " ranks"))
        }
    text(RIGHT + 16, 40 + 18 * 4, "start", "black", "dashed: 2 % jitter")
    print "</svg>"
}
# ---- what the dashboard lays beside its jobs' points
function page(    k, p, i, n, e) {
    print "// Generated by make simulate-cluster from tests/scale/simulated.tsv: libtraincomm on simulated clusters, ResNet-50 at 224, fp32, no jitter."
    print "// rate: images/s of all nodes. See doc/scaling.md."
    print "export const SIMULATED = ["
    for (k = 1; k <= kinds; k++)
        for (p = 1; p <= 2; p++) {
            printf "  { key: \"simulated-%s-%d\", label: \"%s, %d worker%s, simulated\", points: [", kind_of[k], p, title[kind_of[k]], p, p == 1 ? "" : "s"
            printf "{ nodes: 1, workers: %d, rate: %d }", p, rate[kind_of[k]]
            for (i = 1; i <= count; i++) {
                n = sizes[i]
                e = plain(kind_of[k], p, n)
                if (e >= 0)
                    printf ", { nodes: %d, workers: %d, rate: %.0f }", n, n * p, n * rate[kind_of[k]] * e / 100
            }
            print "] },"
        }
    print "];"
}
# ---- what must be
function must(kind, per_node, nodes, least,    e) {
    e = plain(kind, per_node, nodes)
    if (e < 0 && show == "missing" || e >= 0 && e < least && show == "broken")
        print title[kind] ", " per_node " a node, " nodes " nodes: " (e < 0 ? "not simulated" : sprintf("%.1f %%", e)) ", must be at least " least " %"
}
function broken(    key, part, besides) {
    must("surfsara", 2, 256, 95)
    must("surfsara", 1, 1024, 95)
    must("fast", 2, 64, 93)
    for (key in step) {
        split(key, part, SUBSEP)
        if (part[5] != 0.02 || show != "broken" || plain(part[1], part[2], part[3]) < 0)
            continue
        besides = 100 * ideal[key] / alone[key] - 100 * ideal[key] / step[key] - (100 - plain(part[1], part[2], part[3]))
        if (besides > 1)
            printf "%s, %d a node, %d nodes: with 2 %% jitter %.1f points besides what the jitter alone costs and what is lost without, must be at most 1\n", title[part[1]], part[2], part[3], besides
    }
}
END {
    sort_sizes()
    if (show == "table") table()
    else if (show == "picture") picture()
    else if (show == "page") page()
    else broken()
}
