#if Tool
import Etagere
import Foundation

/// The destination of `get --output`: a file, a folder, standard output, or none.
struct OutputTarget {
  private enum Kind {
    case nothing, standardOutput
    case file(URL)
    case folder(URL)
  }

  private let kind: Kind
  private let names = NameRegister()

  init(_ path: String?, count: Int) throws {
    guard let path else {
      kind = .nothing
      return
    }
    guard path != "-" else {
      kind = .standardOutput
      return
    }
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    guard path.hasSuffix("/") || count > 1 || exists && isFolder.boolValue else {
      kind = .file(URL(filePath: path, directoryHint: .notDirectory))
      return
    }
    let folder = URL(filePath: path, directoryHint: .isDirectory)
    do {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    } catch {
      Console.complain("cannot create folder '\(path)': \(FileReason(error))")
      throw ToolFailure(status: .cannotCreate)
    }
    kind = .folder(folder)
  }

  /// Writes the bytes, completely or not at all.
  ///
  /// - Parameter format: The format of an image that was made, which determines the extension of its name in a folder.
  /// - Returns: The path of the file, or `nil` if the destination is not a file.
  func write(_ data: Data, index: Int, url: URL, as format: ImageFormat? = nil) throws(CacheError) -> String? {
    let file: URL
    switch kind {
    case .nothing: return nil
    case .standardOutput:
      do {
        try FileHandle.standardOutput.write(contentsOf: data)
      } catch {
        throw CacheError(.fileSystem, reason: "cannot write standard output: \(FileReason(error))", underlying: error)
      }
      return nil
    case .file(let target): file = target
    case .folder(let folder):
      file = folder.appending(path: names.name(for: url, index: index, as: format), directoryHint: .notDirectory)
    }
    do {
      try data.write(to: file, options: .atomic)
    } catch {
      let path = file.path(percentEncoded: false)
      throw CacheError(.fileSystem, reason: "cannot write '\(path)': \(FileReason(error))", underlying: error)
    }
    return file.path(percentEncoded: false)
  }
}

/// The file names for URLs: the last part of the path, with a number if the name is already used.
private final class NameRegister: Sendable {
  private let used = Lock(Set<String>())

  func name(for url: URL, index: Int, as format: ImageFormat?) -> String {
    let last = url.scheme == "data" ? "" : url.lastPathComponent
    var base = ["", "/", ".", ".."].contains(last) ? "resource-\(index + 1)" : last.replacing("/", with: "_")
    if let format {
      let dot = base.lastIndex(of: ".").flatMap { $0 == base.startIndex ? nil : $0 } ?? base.endIndex
      base = "\(base[..<dot]).\(format.fileExtension)"
    }
    return used.withLock { used in
      var name = base
      var number = 2
      while !used.insert(name).inserted {
        let dot = base.lastIndex(of: ".") ?? base.endIndex
        name = "\(base[..<dot])-\(number)\(base[dot...])"
        number += 1
      }
      return name
    }
  }
}
#endif
