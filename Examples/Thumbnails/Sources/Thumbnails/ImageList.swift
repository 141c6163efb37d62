import Etagere
import Foundation

/// An image, and the name of its thumbnail in the output folder.
struct SourceImage: Hashable, Sendable {
  var url: URL
  var name: String

  /// The path of a file, or the URL without user information.
  var address: String { url.isFileURL ? url.path(percentEncoded: false) : LoadURL(url).description }
}

/// The images that the command line names, in order and without duplicates.
struct ImageList {
  private struct Found {
    var url: URL
    /// The path below the named folder, or the last component of the URL, without the extension.
    var stem: String
  }

  private static let extensions: Set<String> = [
    "jpg", "jpeg", "png", "gif", "webp", "avif", "heic", "heif", "tif", "tiff", "svg",
  ]

  /// The largest list, in bytes. A pipe has no end that is known.
  private static let listLimit = 64 << 20

  private var found: [Found] = []
  private var known: Set<URL> = []
  /// The output folder. It is skipped, so that no thumbnails of thumbnails are made.
  private let output: String

  init(except output: URL) { self.output = Self.place(output) }

  private static func place(_ folder: URL) -> String {
    let path = folder.standardizedFileURL.resolvingSymlinksInPath().path(percentEncoded: false)
    return path.hasSuffix("/") ? String(path.dropLast()) : path
  }

  /// Adds a folder, an image, a URL, a list, or `-` for a list on standard input.
  ///
  /// - Throws: ``CacheError`` for any other source.
  mutating func add(_ source: String) throws(CacheError) {
    if source == "-" { return try addList(Self.read(.standardInput, "standard input"), "standard input") }
    if try addURL(source) { return }
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: source, isDirectory: &isFolder) else {
      throw CacheError(.fileSystem, reason: "No such file or directory", path: source)
    }
    let url = URL(filePath: source, directoryHint: isFolder.boolValue ? .isDirectory : .notDirectory).standardizedFileURL
    if isFolder.boolValue {
      try addFolder(url)
    } else if Self.extensions.contains(url.pathExtension.lowercased()) {
      add(url, named: url.lastPathComponent)
    } else {
      guard let file = FileHandle(forReadingAtPath: source) else {
        throw CacheError(.fileSystem, reason: "cannot read the file", path: source)
      }
      try addList(Self.read(file, source), source)
    }
  }

  private mutating func addURL(_ text: String) throws(CacheError) -> Bool {
    guard ["http://", "https://"].contains(where: text.lowercased().hasPrefix) else { return false }
    let url: URL
    do throws(CacheError) {
      url = try ResourceRequest(text).url
    } catch {
      throw CacheError(error.code, reason: error.reason, url: Self.withoutUserInformation(text))
    }
    add(url, named: Self.fileName(url))
    return true
  }

  /// Returns a file name from the end of a URL. A URL with `%2E%2E%2F` cannot name a file outside the folder.
  private static func fileName(_ url: URL) -> String {
    let last = url.lastPathComponent == "/" ? "" : url.lastPathComponent
    let name = String((last.isEmpty ? url.host() ?? "image" : last).map { "/\\\0".contains($0) ? "_" : $0 }.prefix(60))
    return name.hasPrefix(".") ? "_" + name.dropFirst() : name
  }

  /// Returns a URL without the part before its `@`, which can be a password.
  private static func withoutUserInformation(_ text: String) -> String {
    guard let start = text.firstRange(of: "://")?.upperBound, let at = text[start...].lastIndex(of: "@") else { return text }
    return String(text[..<start] + text[text.index(after: at)...])
  }

  /// Returns the bytes of a list, which can be in a pipe.
  private static func read(_ file: FileHandle, _ name: String) throws(CacheError) -> Data {
    let bytes: Data
    do {
      bytes = try file.read(upToCount: listLimit + 1) ?? Data()
    } catch {
      throw CacheError(.fileSystem, reason: error.localizedDescription, path: name, underlying: error)
    }
    guard bytes.count <= listLimit else {
      throw CacheError(.bodyTooLarge, reason: "the list has more than \(listLimit) bytes", path: name)
    }
    return bytes
  }

  /// The lines of a list that are not empty and no comments. A line that is not UTF-8 has no text.
  private static func lines(of list: Data) -> [(number: Int, text: String?)] {
    list.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated().compactMap { index, bytes in
      guard !bytes.contains(0), let line = String(validating: bytes, as: UTF8.self) else { return (index + 1, nil) }
      let text = line.trimmingPrefix("\u{FEFF}").trimmingCharacters(in: .whitespacesAndNewlines)
      return text.isEmpty || text.hasPrefix("#") ? nil : (index + 1, text)
    }
  }

  private mutating func addList(_ bytes: Data, _ name: String) throws(CacheError) {
    for line in Self.lines(of: bytes) {
      guard let text = line.text, text.utf8.count < 4096 else {
        throw CacheError(
          .fileSystem, reason: "neither an image nor a list of images: line \(line.number) is not UTF-8 text", path: name)
      }
      do throws(CacheError) {
        if try addURL(text) { continue }
      } catch {
        throw CacheError(error.code, reason: "\(error.reason) in line \(line.number)", url: error.url, path: name)
      }
      // Any other line is the path of a file. A missing or invalid file is reported when it is loaded.
      let url = URL(filePath: text, directoryHint: .notDirectory).standardizedFileURL
      add(url, named: url.lastPathComponent)
    }
  }

  private mutating func addFolder(_ folder: URL) throws(CacheError) {
    let path = folder.path(percentEncoded: false)
    guard let names = FileManager.default.enumerator(atPath: path) else {
      throw CacheError(.fileSystem, reason: "cannot read the folder", path: path)
    }
    var files: [String] = []
    while let name = names.nextObject() as? String {
      let last = name.split(separator: "/").last ?? ""
      if names.fileAttributes?[.type] as? FileAttributeType == .typeDirectory {
        let isOutput = Self.place(folder.appending(path: name, directoryHint: .isDirectory)) == output
        if last.hasPrefix(".") || isOutput { names.skipDescendants() }
      } else if !last.hasPrefix("."), let dot = last.lastIndex(of: "."),
        Self.extensions.contains(last[last.index(after: dot)...].lowercased())
      {
        files.append(name)
      }
    }
    for name in files.sorted() { add(folder.appending(path: name, directoryHint: .notDirectory), named: name) }
  }

  private mutating func add(_ url: URL, named name: String) {
    guard known.insert(url).inserted else { return }
    let dot = name.lastIndex(of: ".").flatMap { name[$0...].contains("/") || $0 == name.startIndex ? nil : $0 }
    found.append(Found(url: url, stem: String(name[..<(dot ?? name.endIndex)])))
  }

  /// Returns the images with the names of their thumbnails. If several images would have the same name, a digest of the URL is
  /// added, which is the same in every run.
  func named(_ fileExtension: String) -> [SourceImage] {
    var counts: [String: Int] = [:]
    // On a case-insensitive file system, `A.jpg` and `a.jpg` are the same file.
    for image in found { counts[image.stem.lowercased(), default: 0] += 1 }
    return found.map { image in
      let isAlone = counts[image.stem.lowercased()] == 1
      let stem = isAlone ? image.stem : "\(image.stem)-\(Self.digest(image.url.absoluteString))"
      return SourceImage(url: image.url, name: "\(stem).\(fileExtension)")
    }
  }

  /// Returns the FNV-1a digest of a text, with 64 bits.
  private static func digest(_ text: String) -> String {
    let hash = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
    return String(hash, radix: 36)
  }
}
