package main

// nearest returns the name that a mistyped one most likely stands for, or "" if none is near: at most
// one edit for each three letters.
func nearest(typed string, names []string) string {
	best, bestDistance := "", len(typed)/3+1
	for _, name := range names {
		if d := editDistance(typed, name); d < bestDistance || d == bestDistance && best == "" && d <= len(typed)/3 {
			best, bestDistance = name, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that make a
// into b.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64 // no name of ours is that long
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
