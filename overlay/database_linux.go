package overlay

import (
	"slices"
	"strings"
)

// companions are what SQLite keeps beside a database: pages that are not in it yet, or still. Beside another
// version of the database they destroy it.
var companions = []string{"-wal", "-shm", "-journal"}

// databaseOf returns the path of the database that path would be a companion of, "" if it has no such name.
func databaseOf(path string) string {
	for _, suffix := range companions {
		if db, found := strings.CutSuffix(path, suffix); found && baseName(db) != "" {
			return db
		}
	}
	return ""
}

// settleDatabases lets databases and their companions land together: if someone else changed one of these
// files, each that the run changed is a conflict. The database then comes beside, without companions.
func (c *collector) settleDatabases() error {
	changed := map[string]*change{}
	var databases []string
	for i := range c.changes {
		ch := &c.changes[i]
		if ch.unit != "" || ch.kind == setMode || ch.run.kind == directory || ch.host.kind == directory {
			continue
		}
		changed[ch.path] = ch
		db := databaseOf(ch.path)
		// The pages of a database have at least 512 bytes.
		if db == "" && ch.host.kind == regular && ch.host.size%512 == 0 {
			db = ch.path
		}
		if db != "" {
			databases = append(databases, db)
		}
	}
	slices.Sort(databases)
	dropped := map[string]bool{}
	for _, db := range slices.Compact(databases) {
		if err := c.settleDatabase(db, changed, dropped); err != nil {
			return err
		}
	}
	if len(dropped) > 0 {
		c.changes = slices.DeleteFunc(c.changes, func(ch change) bool { return dropped[ch.path] && ch.unit == "" })
	}
	return nil
}

func (c *collector) settleDatabase(db string, changed map[string]*change, dropped map[string]bool) error {
	host, err := c.host.stat(db)
	if err != nil {
		return err
	}
	withheld := slices.ContainsFunc(c.withheld, func(w Withheld) bool { return w.Path == db })
	own := changed[db]
	if own == nil && host.kind != regular && !withheld {
		return nil // no database: a file that has such a name
	}
	members := []string{db}
	for _, suffix := range companions {
		members = append(members, db+suffix)
	}
	conflict, found := own != nil && own.conflict || c.looked(db, host), 0
	for _, path := range members[1:] {
		i, err := c.host.stat(path)
		if err != nil {
			return err
		}
		if i.kind != absent || changed[path] != nil {
			found++
		}
		conflict = conflict || c.looked(path, i) || changed[path] != nil && changed[path].conflict
	}
	if found == 0 {
		return nil
	}
	for _, path := range members {
		ch := changed[path]
		switch {
		case ch == nil:
		case withheld:
			dropped[path] = true
			c.withhold(path, "its database is withheld")
		case !conflict:
			ch.unit = db // so that none lands without the others
		case path != db:
			// What is there stays; a conflict file of this name would be taken for one of another database.
			ch.kind, ch.conflict = remove, true
		default:
			ch.conflict = true
		}
	}
	return nil
}
