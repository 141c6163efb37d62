#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The end of the symbolic links of a path.
enum LinkTarget: Equatable {
  /// An open descriptor of this process, named by `/dev/stdout`, `/dev/fd/3` or `/proc/self/fd/3`.
  ///
  /// The descriptor is used as it is. If the path were opened again, Linux would start at the beginning of a file, would refuse a
  /// socket, and would check the permissions of a pipe that another user has made.
  case descriptor(Descriptor)
  /// A path whose last part is not a link. There may be no file with this name.
  case path(String)

  init(_ path: String) {
    var path = path
    // The limit is that of Linux. After it, the path is a link, which a caller that opens it gets as ELOOP.
    for _ in 0..<40 {
      guard !path.hasSuffix("/") else { break }
      let slash = path.lastIndex(of: "/")
      let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
      let parent = slash.map { path[...$0] } ?? "."
      // If the folder does not exist, opening the path reports that.
      let folder = Self.realPath(String(parent)) ?? String(parent)
      if let number = Int32(name), number >= 0, Self.isDescriptorFolder(folder) {
        self = .descriptor(Descriptor(number: number))
        return
      }
      path = folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
      guard let target = Self.linkTarget(path) else { break }
      path = target.hasPrefix("/") ? target : "\(folder)/\(target)"
    }
    self = .path(path)
  }

  private static func isDescriptorFolder(_ folder: String) -> Bool {
    if folder == "/dev/fd" { return true }
    guard folder.hasSuffix("/fd"), let process = realPath("/proc/self") else { return false }
    return folder.hasPrefix("\(process)/")
  }

  private static func realPath(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(validatingCString: resolved)
  }

  /// Returns the target of a link, or `nil` if the path is not a link or its target is not UTF-8.
  private static func linkTarget(_ path: String) -> String? {
    var bytes = Data(count: Int(PATH_MAX))
    let count = bytes.withUnsafeMutableBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) { text in text.baseAddress.map { readlink(path, $0, text.count) } ?? 0 }
    }
    return count > 0 ? String(validating: bytes.prefix(count), as: UTF8.self) : nil
  }
}
