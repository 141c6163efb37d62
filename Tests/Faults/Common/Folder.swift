import Foundation

/// The contents of a folder, by direct system calls.
enum Folder {
  /// Returns the files below `path` with their sizes in bytes. Files that disappear meanwhile are omitted.
  static func files(_ path: String) -> [(path: String, size: Int64)] {
    guard let stream = opendir(path) else { return [] }
    defer { closedir(stream) }
    var found: [(path: String, size: Int64)] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      guard name != ".", name != ".." else { continue }
      var status = stat()
      guard lstat("\(path)/\(name)", &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR {
        found += files("\(path)/\(name)")
      } else {
        found.append(("\(path)/\(name)", Int64(status.st_size)))
      }
    }
    return found
  }

  /// Returns the total size in bytes of the files below `path`.
  static func size(_ path: String) -> Int64 { files(path).reduce(0) { $0 + $1.size } }
}

/// Returns a number with grouped thousands.
func grouped(_ number: some BinaryInteger) -> String {
  var text = ""
  for (index, digit) in String(number).reversed().enumerated() {
    if index > 0, index.isMultiple(of: 3), digit != "-" { text.append(",") }
    text.append(digit)
  }
  return String(text.reversed())
}
