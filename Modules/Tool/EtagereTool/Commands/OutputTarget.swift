#if Tool
import CommandIO
import Etagere
import Foundation

/// The destination of `get --output`: a file, a folder, standard output, or none.
struct OutputTarget {
  private enum Kind {
    case nothing, standardOutput
    case file(OutputFile)
    case folder(URL)
  }

  private let kind: Kind
  private let names = NameRegister()

  /// Whether an option names standard output: as `-`, or as a path such as `/dev/stdout`.
  static func isStandardOutput(_ path: String?) -> Bool {
    path.map { $0 == "-" || OutputFile($0).isStandardOutput } ?? false
  }

  init(_ path: String?, count: Int) throws {
    guard let path else {
      kind = .nothing
      return
    }
    guard !Self.isStandardOutput(path) else {
      kind = .standardOutput
      return
    }
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    guard path.hasSuffix("/") || count > 1 || exists && isFolder.boolValue else {
      kind = .file(OutputFile(path))
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

  /// The file into which a load may write, or `nil` if the path names something else. The name in a folder is known only at the
  /// end of a load.
  var replaceableFile: URL? {
    guard case .file(let file) = kind, file.isReplaceable else { return nil }
    return URL(filePath: file.path, directoryHint: .notDirectory)
  }

  /// Writes the bytes into what the path names. If the reader of standard output has closed the pipe, the error has no reason.
  ///
  /// - Parameter format: The format of an image that was made, which determines the extension of its name in a folder.
  /// - Returns: The path of the file, or `nil` if the destination is not a file.
  func write(_ data: Data, index: Int, url: URL, as format: ImageFormat? = nil) throws(CacheError) -> String? {
    let file: OutputFile
    switch kind {
    case .nothing: return nil
    case .standardOutput:
      do throws(CacheError) {
        try Descriptor.standardOutput.write(data)
      } catch {
        // A reader such as `head` closes the pipe when it has enough. That is not an error to report.
        let reason = error.errno == EPIPE ? "" : "cannot write standard output: \(error.reason)"
        throw CacheError(.fileSystem, reason: reason, errno: error.errno)
      }
      return nil
    case .file(let target): file = target
    case .folder(let folder):
      let name = names.name(for: url, index: index, as: format)
      file = OutputFile(folder.appending(path: name, directoryHint: .notDirectory).path(percentEncoded: false))
    }
    try file.write(data)
    return URL(filePath: file.path, directoryHint: .notDirectory).path(percentEncoded: false)
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
