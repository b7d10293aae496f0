// Package spelling finds what a mistyped name was meant to be: a command, a flag, a key, an argument of a
// tool. It is a leaf: it imports nothing of airlock.
package spelling

import "strings"

// maxName is longer than every name that is offered. What was typed can be anything, and takes time
// that grows with its length.
const maxName = 64

// Nearest returns the name that a person who wrote word probably meant, or "". An abbreviation counts
// most ("timeout" or "cmd" for timeout_seconds and command), then the fewest slips of the keyboard, if
// these are few for the length of the name. Case does not count.
func Nearest(word string, names []string) string {
	if len(word) > maxName {
		return ""
	}
	word = strings.ToLower(word)
	best, least := "", 0
	for _, name := range names {
		lower := strings.ToLower(name)
		d := slips(word, lower)
		if abbreviates(word, lower) || strings.HasPrefix(word, lower) {
			d = 0
		}
		if d <= (len(name)+2)/3 && (best == "" || d < least) {
			best, least = name, d
		}
	}
	return best
}

// abbreviates reports whether word is name with letters left out, but for the first.
func abbreviates(word, name string) bool {
	if len(word) < 3 || word[0] != name[0] {
		return false
	}
	for i := range len(word) {
		at := strings.IndexByte(name, word[i])
		if at < 0 {
			return false
		}
		name = name[at+1:]
	}
	return true
}

// slips counts the letters to insert, delete, replace or swap with their neighbour to make b of a.
func slips(a, b string) int {
	var before []int
	above := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above = above, row
	}
	return above[len(b)]
}
