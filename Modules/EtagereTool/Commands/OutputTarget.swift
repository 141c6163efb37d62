#if Tool
import Etagere
import Foundation

/// Where `get -o` writes: a file, a folder, standard output, or nowhere.
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
      Console.complain("\(path): the folder can't be made: \(FileReason(error))")
      throw ToolFailure(status: .cannotWriteOutput)
    }
    kind = .folder(folder)
  }

  /// Writes the bytes, whole or not at all.
  ///
  /// - Parameter format: of a picture that was made: what its name in a folder ends in.
  /// - Returns: the file's path, where there is one.
  func write(_ data: Data, index: Int, url: URL, as format: ImageFormat? = nil) throws(CacheError) -> String? {
    let file: URL
    switch kind {
    case .nothing: return nil
    case .standardOutput:
      do {
        try FileHandle.standardOutput.write(contentsOf: data)
      } catch {
        throw CacheError(
          .fileSystem, reason: "can't be written: \(FileReason(error))", path: "standard output", underlying: error)
      }
      return nil
    case .file(let target): file = target
    case .folder(let folder):
      file = folder.appending(path: names.name(for: url, index: index, as: format), directoryHint: .notDirectory)
    }
    do {
      try data.write(to: file, options: .atomic)
    } catch {
      throw CacheError(
        .fileSystem, reason: "can't be written: \(FileReason(error))", path: file.path(percentEncoded: false), underlying: error)
    }
    return file.path(percentEncoded: false)
  }
}

/// Gives each URL a file name of its own: the last part of its path, numbered when two would be the same.
private final class NameRegister: Sendable {
  private let taken = Lock(Set<String>())

  func name(for url: URL, index: Int, as format: ImageFormat?) -> String {
    let last = url.scheme == "data" ? "" : url.lastPathComponent
    var base = ["", "/", ".", ".."].contains(last) ? "resource-\(index + 1)" : last.replacing("/", with: "_")
    if let format {
      let dot = base.lastIndex(of: ".").flatMap { $0 == base.startIndex ? nil : $0 } ?? base.endIndex
      base = "\(base[..<dot]).\(format.fileExtension)"
    }
    return taken.withLock { taken in
      var name = base
      var number = 2
      while !taken.insert(name).inserted {
        let dot = base.lastIndex(of: ".") ?? base.endIndex
        name = "\(base[..<dot])-\(number)\(base[dot...])"
        number += 1
      }
      return name
    }
  }
}
#endif
