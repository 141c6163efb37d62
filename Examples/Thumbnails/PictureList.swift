#if Thumbnails
import Etagere
import Foundation

/// A picture, and what its thumbnail is called, below the output folder.
struct Picture: Hashable, Sendable {
  var url: URL
  var name: String

  /// As a person would write it.
  var address: String { url.isFileURL ? url.path(percentEncoded: false) : url.absoluteString }
}

/// What the command line names, in order, each once.
struct PictureList {
  private struct Found {
    var url: URL
    /// Where it stands below the folder that was named, or what its URL ends in; without its extension.
    var stem: String
  }

  private static let extensions: Set<String> = [
    "jpg", "jpeg", "png", "gif", "webp", "avif", "heic", "heif", "tif", "tiff", "svg",
  ]

  private var found: [Found] = []
  private var known: Set<URL> = []
  /// Thumbnails of thumbnails are made of nothing that lies here.
  private let output: String

  init(except output: URL) { self.output = Self.place(output) }

  private static func place(_ folder: URL) -> String {
    let path = folder.standardizedFileURL.resolvingSymlinksInPath().path(percentEncoded: false)
    return path.hasSuffix("/") ? String(path.dropLast()) : path
  }

  /// A folder, a picture, a URL, a list, or `-`.
  ///
  /// - Throws: ``CacheError`` for what is none of these.
  mutating func add(_ source: String) throws(CacheError) {
    if source == "-" { return try addList(FileHandle.standardInput.readDataToEndOfFile(), "standard input") }
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
    } else if let list = FileManager.default.contents(atPath: source) {
      try addList(list, source)
    } else {
      throw CacheError(.fileSystem, reason: "can't be read", path: source)
    }
  }

  private mutating func addURL(_ text: String) throws(CacheError) -> Bool {
    guard text.hasPrefix("http://") || text.hasPrefix("https://") else { return false }
    guard let url = URL(string: text), url.host() != nil else {
      throw CacheError(.invalidURL, reason: "this is no URL", url: text)
    }
    add(url, named: Self.fileName(url))
    return true
  }

  /// What a URL ends in, as a name that stays in its folder: a stranger's `%2E%2E%2F` is no way out of it.
  private static func fileName(_ url: URL) -> String {
    let last = url.lastPathComponent == "/" ? "" : url.lastPathComponent
    let name = String((last.isEmpty ? url.host() ?? "picture" : last).map { "/\\\0".contains($0) ? "_" : $0 }.prefix(60))
    return name.hasPrefix(".") ? "_" + name.dropFirst() : name
  }

  private mutating func addList(_ bytes: Data, _ name: String) throws(CacheError) {
    for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
      let line = line.trimmingCharacters(in: .whitespaces)
      if line.isEmpty || line.hasPrefix("#") { continue }
      if try addURL(line) { continue }
      // What is no URL is a file: that there is none, or that it is no picture, is told when its turn comes.
      guard !line.utf8.contains(0), line.utf8.count < 4096, !line.contains("\u{FFFD}") else {
        throw CacheError(.fileSystem, reason: "neither a picture nor a list of them", path: name)
      }
      let url = URL(filePath: line, directoryHint: .notDirectory).standardizedFileURL
      add(url, named: url.lastPathComponent)
    }
  }

  private mutating func addFolder(_ folder: URL) throws(CacheError) {
    let path = folder.path(percentEncoded: false)
    guard let names = FileManager.default.enumerator(atPath: path) else {
      throw CacheError(.fileSystem, reason: "the folder can't be read", path: path)
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

  /// The pictures with their thumbnails' names. A name that several would have gets a part of its own from the picture's address,
  /// the same in every run.
  func named(_ fileExtension: String) -> [Picture] {
    var counts: [String: Int] = [:]
    // Some file systems hold `A.jpg` and `a.jpg` to be one file.
    for picture in found { counts[picture.stem.lowercased(), default: 0] += 1 }
    return found.map { picture in
      let isAlone = counts[picture.stem.lowercased()] == 1
      let stem = isAlone ? picture.stem : "\(picture.stem)-\(Self.digest(picture.url.absoluteString))"
      return Picture(url: picture.url, name: "\(stem).\(fileExtension)")
    }
  }

  /// FNV-1a, 64 bits.
  private static func digest(_ text: String) -> String {
    let hash = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
    return String(hash, radix: 36)
  }
}
#endif
