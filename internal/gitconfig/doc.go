// Package gitconfig reads git's configuration files without git, and judges what a change of one means.
//
// The files come from a hostile place. So the parser takes less than git does: whatever versions of git
// read in different ways, or what no program writes, is an error. What it does take it reads as git does,
// which is tested against git itself. Nothing is ever executed, and nothing is read but the bytes given,
// by Parse, or bounded regular files, by Obeyed.
package gitconfig
