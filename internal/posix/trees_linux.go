package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// compareTrees plays random sequences on equal trees, bare and in a run that lands, several rounds on what the
// one before left. Each call must come to the same, and the trees must be equal, in the run and landed.
func compareTrees(ctx context.Context, out io.Writer, s *sides, o options) (differences []string, err error) {
	bare, workspace, err := s.pair("trees")
	if err != nil {
		return nil, err
	}
	seeds := make([]int, o.trees)
	for i := range seeds {
		seeds[i] = o.seed + i
		for _, side := range []string{bare, workspace} {
			dir := filepath.Join(side, strconv.Itoa(seeds[i]))
			if err := errors.Join(os.Mkdir(dir, 0o755), growTree(dir, seeds[i])); err != nil {
				return nil, fmt.Errorf("the tree of seed %d: %w", seeds[i], err)
			}
		}
	}
	compared := 0
	for round := 1; round <= o.rounds; round++ {
		x, y, err := s.playTrees(ctx, bare, workspace, round, o.operations)
		if err != nil {
			return differences, fmt.Errorf("round %d: %w", round, err)
		}
		seeds = slices.DeleteFunc(seeds, func(seed int) bool {
			name := strconv.Itoa(seed)
			compared += len(x[name].Operations)
			where, text := compareTree(x[name], y[name], filepath.Join(bare, name), filepath.Join(workspace, name))
			if text != "" {
				differences = append(differences, fmt.Sprintf("seed %d, round %d, %s:\n%s", seed, round, where, text))
			}
			return text != "" || ends(y[name].Tree)
		})
	}
	fmt.Fprintf(out, "   %d random calls on %d trees: %d trees differ\n", compared, o.trees, len(differences))
	return differences, nil
}

// playTrees plays a round on both sides.
func (s *sides) playTrees(ctx context.Context, bare, workspace string, round, operations int) (x, y map[string]treeResult, err error) {
	argv := []string{s.program, playTreeCommand, strconv.Itoa(round), strconv.Itoa(operations)}
	a, err := s.bare(ctx, bare, argv...)
	if err != nil {
		return nil, nil, err
	}
	b, said, err := s.run(ctx, workspace, argv...)
	if err != nil {
		return nil, nil, fmt.Errorf("%w\n%s", err, said)
	}
	return x, y, errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y))
}

func compareTree(x, y treeResult, bare, workspace string) (where, text string) {
	if text := difference(x.Operations, y.Operations); text != "" {
		return "a call", text
	}
	if text := difference(x.Tree, y.Tree); text != "" {
		return "the tree in the run", text
	}
	if slices.ContainsFunc(y.Tree, isFIFO) {
		return "", ""
	}
	return "the landed tree", difference(describeTree(bare, true), describeTree(workspace, true))
}

// ends reports whether the comparison of a tree ends with a round that left it like this. A FIFO does not land,
// and what it replaced stays. Of several links to a file that lies in the lower layer, a write in a run
// changes one, as an overlay without an index does.
func ends(tree []string) bool {
	return slices.ContainsFunc(tree, func(line string) bool {
		return isFIFO(line) || strings.Contains(line, " links") && !strings.Contains(line, " 1 links")
	})
}

func isFIFO(line string) bool { return strings.Contains(line, " ok 010") }
