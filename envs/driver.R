# What installs R packages inside the sandbox. It is given its work in files of /build and leaves what came of it
# in /build/answer.json. R 3.6 or later, and no package but what R itself brings.
step <- commandArgs(trailingOnly = TRUE)[1]
quoted <- function(s) {
  s <- gsub("[[:cntrl:]]", " ", ifelse(is.na(s), "", s))
  paste0("\"", gsub("([\"\\\\])", "\\\\\\1", s), "\"")
}
objects <- function(...) {
  columns <- list(...)
  pairs <- Map(function(key, values) paste0(quoted(key), ": ", quoted(values)), names(columns), columns)
  if (length(columns[[1]]) == 0) "[]" else paste0("[", paste0("{", do.call(paste, c(pairs, sep = ", ")), "}", collapse = ",\n"), "]")
}
answer <- function(...) {
  parts <- list(...)
  text <- paste0("{", paste0(quoted(names(parts)), ": ", parts, collapse = ",\n"), "}")
  con <- file("/build/answer.json", "w", encoding = "UTF-8")
  writeLines(enc2utf8(text), con, useBytes = TRUE)
  close(con)
}
lines <- readLines("/build/requirements.txt", encoding = "UTF-8")
lines <- lines[nzchar(lines)]
options(timeout = 600, warn = 1)
installed <- function(lib = NULL) {
  all <- installed.packages(lib.loc = lib, noCache = TRUE)
  all <- all[!duplicated(all[, "Package"]), , drop = FALSE] # the first on the path is the one that R loads
  objects(name = all[, "Package"], version = all[, "Version"])
}

if (step == "probe") {
  answer(version = quoted(paste(R.version$major, R.version$minor, sep = ".")), platform = quoted(R.version$platform),
         library = quoted(R.home("lib")))
} else if (step == "resolve") {
  repo <- lines[1]
  db <- available.packages(repos = repo, type = "source", ignore_repo_cache = TRUE)
  if (nrow(db) == 0) {
    message("ERROR: the repository's index could not be read, or it has no package for this R")
    quit(status = 1)
  }
  kinds <- c("Depends", "Imports", "LinkingTo")
  wanted <- intersect(lines[-1], rownames(db))
  needed <- unique(unlist(tools::package_dependencies(wanted, db, which = kinds, recursive = TRUE)))
  rows <- db[intersect(union(wanted, needed), rownames(db)), , drop = FALSE]
  fields <- apply(rows[, kinds, drop = FALSE], 1, function(f) paste(f[!is.na(f)], collapse = ", "))
  file <- if ("File" %in% colnames(rows)) rows[, "File"] else rep(NA_character_, nrow(rows))
  file <- ifelse(is.na(file), paste0(rows[, "Package"], "_", rows[, "Version"], ".tar.gz"), file)
  answer(packages = objects(name = rows[, "Package"], version = rows[, "Version"], requires = as.character(fields),
                            md5 = rows[, "MD5sum"], file = file, url = paste0(rows[, "Repository"], "/", file)),
         system = installed())
} else if (step == "fetch") {
  for (line in strsplit(lines, "\t", fixed = TRUE)) {
    download.file(line[1], file.path("/build/wheels", line[2]), mode = "wb", quiet = TRUE)
  }
  answer(status = "0")
} else if (step == "install") {
  # What does not build is a warning, and no more: what is there afterwards is what counts.
  install.packages(file.path("/wheels", lines), lib = "/env-r", repos = NULL, type = "source")
  answer(packages = installed("/env-r"))
}
