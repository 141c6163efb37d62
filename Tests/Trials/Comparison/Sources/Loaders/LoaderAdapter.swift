import Foundation

/// A loader under test: the few calls through which a scenario drives it.
///
/// Each instance has a separate process. A restart is a new process with a new instance on the same folder.
protocol LoaderAdapter: Sendable {
  /// Opens the loader with `folder` as the only folder for its cache.
  init(folder: URL) async throws

  /// Loads `url` in the way an app would, with the loader's own caching.
  ///
  /// - Returns: The response that the loader gives to an app. The scenario learns from the origin whether a request was sent.
  func load(_ url: URL, fields: [String: String]) async throws -> LoadedResponse

  /// Returns after all responses are stored.
  func close() async
}

/// A loader's response to an app.
struct LoadedResponse: Sendable {
  /// The status, if the loader reports one.
  var status: Int?
  /// The bytes of the image as the loader reports them.
  var body: Data
}

/// The loaders that this build can run.
enum LoaderKind: String, CaseIterable, Codable, Sendable {
  case etagere
  case urlCache = "urlcache"
  case files
  #if canImport(Kingfisher)
  case kingfisher
  #endif
  #if canImport(Nuke)
  case nuke
  case nukeDataCache = "nuke-datacache"
  #endif

  /// The heading of the loader's column.
  var title: String {
    switch self {
    case .etagere: "Etagere"
    case .urlCache: "`URLSession` with `URLCache`"
    case .files: "a file for each URL (control)"
    #if canImport(Kingfisher)
    case .kingfisher: "Kingfisher"
    #endif
    #if canImport(Nuke)
    case .nuke: "Nuke, default (`URLCache`)"
    case .nukeDataCache: "Nuke with `DataCache`"
    #endif
    }
  }

  /// - Parameter slowsWrites: Whether the control pauses in the middle of each file. It has no effect on other loaders.
  func open(_ folder: URL, slowsWrites: Bool) async throws -> any LoaderAdapter {
    switch self {
    case .etagere: try await EtagereLoader(folder: folder)
    case .urlCache: try await URLCacheLoader(folder: folder)
    case .files: FileLoader(folder: folder, pause: slowsWrites ? .milliseconds(20) : nil)
    #if canImport(Kingfisher)
    case .kingfisher: try await KingfisherLoader(folder: folder)
    #endif
    #if canImport(Nuke)
    case .nuke: try await NukeLoader(folder: folder)
    case .nukeDataCache: try await NukeDataCacheLoader(folder: folder)
    #endif
    }
  }
}
