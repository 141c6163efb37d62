#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Everything in a folder, to show that a program has changed nothing: for each path the mode, the time of the last change and
/// the bytes.
package struct FolderContents: Equatable, CustomStringConvertible {
  private struct Item: Equatable {
    var mode: String
    var modified: Date?
    var bytes: Data?
  }

  private var items: [String: Item] = [:]

  package init(of path: String) throws {
    for name in try FileManager.default.subpathsOfDirectory(atPath: path) + [""] {
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
      let isFile = attributes[.type] as? FileAttributeType == .typeRegular
      items[name] = Item(
        mode: attributes[.posixPermissions].map { "\($0)" } ?? "", modified: attributes[.modificationDate] as? Date,
        bytes: isFile ? try Data(contentsOf: URL(filePath: "\(path)/\(name)")) : nil)
    }
  }

  package var description: String {
    items.keys.sorted().map { "\($0) \(items[$0]?.bytes.map { "\($0.count) bytes" } ?? "folder")" }.joined(separator: "\n")
  }
}
