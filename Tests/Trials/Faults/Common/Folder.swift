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

  /// Returns the space in bytes that the entries below `path` occupy: whole blocks of 4 KiB, and one for the folder of each
  /// resource.
  static func size(_ path: String) -> Int64 {
    let files = files(path)
    let folders = Set(files.map { $0.path.dropLast(35) }.filter { $0.hasSuffix(".d") })
    return files.reduce(Int64(folders.count) * 4_096) { $0 + ($1.size + 4_095) / 4_096 * 4_096 }
  }
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
