import CacheCore
import Foundation

/// The file of each key, found by the headers and keys in the files. `DiskFormat.md` of DiskStore describes them.
enum EntryPaths {
  static func find(below entries: String) throws -> [CacheKey: String] {
    var paths: [CacheKey: String] = [:]
    for (path, _) in Folder.files(entries) {
      guard let file = FileManager.default.contents(atPath: path), let key = key(in: file) else {
        throw FailedCheck("\(path) is not an entry")
      }
      paths[key] = path
    }
    return paths
  }

  private static func key(in file: Data) -> CacheKey? {
    guard file.count > 128 else { return nil }
    var rest = file.dropFirst(Int(number(file.dropFirst(40).prefix(8))))
    func text() -> String? {
      guard rest.count >= 4 else { return nil }
      let count = Int(number(rest.prefix(4)))
      rest = rest.dropFirst(4)
      guard rest.count >= count else { return nil }
      defer { rest = rest.dropFirst(count) }
      return String(decoding: rest.prefix(count), as: UTF8.self)
    }
    guard let resource = text(), let variant = text(), let transform = text() else { return nil }
    return CacheKey(resource: resource, variant: variant, transform: transform)
  }

  private static func number(_ bytes: Data) -> UInt64 { bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
}
