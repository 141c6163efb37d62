#if Tool
import ArgumentParser
import Etagere
import Foundation
import HTTPTypes

/// The options that say where the cache is.
struct CacheOptions: ParsableArguments {
  @Option(
    name: .customLong("cache-dir"),
    help: ArgumentHelp("The folder of the cache. The default is in the user's cache folder.", valueName: "folder"),
    completion: .directory, transform: Text.path)
  var path: String?

  private func folder() throws -> URL {
    if let folder = path.map({ URL(filePath: $0, directoryHint: .isDirectory) }) ?? ResourceManager.defaultFolder {
      return folder
    }
    Console.complain("cannot use the cache folder: there is no home folder; set HOME or XDG_CACHE_HOME, or use --cache-dir")
    throw ToolFailure(status: .ioError)
  }

  /// Opens the store without a manager.
  ///
  /// - Returns: The path of the folder, and its store. The store is `nil` if the folder does not exist: a command that looks at a
  ///   cache does not create one, which could then belong to another user than the one that fills it.
  func open(_ reporting: ReportingOptions) throws -> (path: String, store: DiskCache?) {
    let folder = try folder()
    let path = folder.path(percentEncoded: false)
    var status = stat()
    if stat(path, &status) != 0, errno == ENOENT {
      reporting.trace("no cache folder \(path)")
      return (path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path, nil)
    }
    let store = try opening { () throws(CacheError) in try DiskCache(folder: folder) }
    reporting.trace("cache folder \(store.path)")
    return (store.path, store)
  }

  /// Creates a manager with every component, and the store in this folder.
  func manager(_ reporting: ReportingOptions, _ watch: CacheWatch = CacheWatch()) throws -> ResourceManager {
    let folder = try folder()
    var configuration = try opening { () throws(CacheError) in
      try ResourceManager.Configuration.standard(folder: folder, downloader: reporting.tracing(Engine.make()))
    }
    configuration.observer = reporting.tracing(watch)
    reporting.trace("cache folder \(folder.path(percentEncoded: false))")
    return ResourceManager(configuration)
  }

  private func opening<Value>(_ open: () throws(CacheError) -> Value) throws -> Value {
    do throws(CacheError) {
      return try open()
    } catch {
      Console.complain("cannot use the cache folder: \(error)")
      throw ToolFailure(status: .ioError)
    }
  }
}

/// The names of the policies on the command line.
enum PolicyName: String, ExpressibleByArgument, CaseIterable {
  case standard
  case cacheFirst = "cache-first"
  case revalidate
  case reload
  case cacheOnly = "cache-only"
  case memoryElseReload = "memory-else-reload"
  case staleWhileRevalidate = "stale-while-revalidate"

  var policy: LoadPolicy {
    switch self {
    case .standard: .standard
    case .cacheFirst: .cacheFirst
    case .revalidate: .revalidate()
    case .reload: .reload
    case .cacheOnly: .cacheOnly
    case .memoryElseReload: .memoryElseReload
    case .staleWhileRevalidate: .staleWhileRevalidate
    }
  }
}

/// A stored entry as a person knows it: URL, partition, variant, and the value that was made from the response. Keys and digests
/// are internal and not printed.
struct EntryDescription: Encodable {
  var url: String
  var partition: String?
  /// The request fields that select this response, if it has `Vary`.
  var variant: String?
  /// The image or other value that was made from the response, or `nil` for the response itself.
  var transform: String?
  var bytes: Int64
  var bodyBytes: Int64
  var status: Int
  var ageSeconds: Double
  var isFresh: Bool
  var etag: String?
  var lastModified: String?
  var storedAt: String?
  var usedAt: String?

  /// - Parameter store: The store that the first bytes of a transformed value are read from, or `nil` not to read them. Reading
  ///   counts as a use of the entry.
  init(_ entry: ListedEntry, readingFrom store: (any CacheStore)?, at now: Timestamp) async {
    let metadata = entry.metadata
    let fields = metadata.response.headerFields
    let parts = ResourceID.parts(of: entry.key.resource)
    url = ResourceID.readable(ResourceID.make(uri: parts.text))
    partition = parts.partition
    variant = Self.variant(metadata)
    transform = await Self.transform(entry, store)
    bodyBytes = metadata.bodyLength ?? 0
    bytes = entry.size ?? bodyBytes
    status = metadata.response.status.code
    ageSeconds = metadata.freshness.age(at: now) / .seconds(1)
    isFresh = metadata.freshness.isFresh(at: now)
    etag = fields.first(.eTag)?.value
    lastModified = fields[.lastModified]
    storedAt = entry.storedAt.map { HTTPDate($0).description }
    usedAt = entry.lastUsed.map { HTTPDate($0).description }
  }

  var state: String { isFresh ? "fresh" : "stale" }

  var age: String { Text.seconds(.seconds(ageSeconds)) }

  /// The URL, with everything that distinguishes this entry from the others of that URL.
  var name: String {
    let details = [partition.map { "partition \($0)" }, variant, transform].compactMap(\.self)
    return details.isEmpty ? url : "\(url)  (\(details.joined(separator: "; ")))"
  }

  private static func variant(_ metadata: StoredMetadata) -> String? {
    let stored = metadata.request.headerFields
    var names = metadata.response.headerFields[values: .vary].flatMap { $0.split(separator: ",") }
      .compactMap { HTTPField.Name($0.trimmingCharacters(in: .whitespaces)) }
    // A private cache selects by credentials even if Vary does not name them.
    if stored[.authorization] != nil, !names.contains(.authorization) { names.append(.authorization) }
    guard !names.isEmpty else { return nil }
    return names.map { name in
      guard let value = stored[name] else { return "without \(name.rawName)" }
      return "\(name.rawName): \(SecretFields.visible(value, of: name))"
    }.joined(separator: ", ")
  }

  private static func transform(_ entry: ListedEntry, _ store: (any CacheStore)?) async -> String? {
    guard !entry.key.transform.isEmpty else { return nil }
    let body = try? await store?.entry(for: entry.key, range: 0..<65_536)?.body
    let start = try? await body?.collect()
    return start.flatMap { ImageReport($0) }.map { "image \($0.brief)" } ?? "transformed"
  }
}
#endif
