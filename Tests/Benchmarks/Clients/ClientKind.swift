#if Origin
import CacheCore
import CacheManager
import CacheNetworking
import ETagValidation
import MemoryStore
#if AsyncHTTP
import AsyncHTTPNetworking
#endif

/// Who moves the bytes.
enum Engine: String, Codable, CaseIterable, Sendable {
  #if AsyncHTTP
  case asyncHTTP
  #endif
  case session

  /// The library that this package's engine is built on, and is compared with.
  var peer: String {
    switch self {
    #if AsyncHTTP
    case .asyncHTTP: "async-http-client"
    #endif
    case .session: "URLSession"
    }
  }

  /// This package's engine on it.
  var name: String {
    switch self {
    #if AsyncHTTP
    case .asyncHTTP: "AsyncHTTPNetworking"
    #endif
    case .session: "CacheNetworking"
    }
  }

  /// A downloader of the package's, and how it is closed.
  ///
  /// - Parameter connections: to one host; nil: the engine's own number.
  func makeDownloader(connections: Int? = nil) throws(CacheError) -> OpenDownloader {
    switch self {
    #if AsyncHTTP
    case .asyncHTTP:
      let downloader = try AsyncHTTPDownloader(
        configuration: .init { $0.connectionsPerHost = connections ?? $0.connectionsPerHost })
      return OpenDownloader(downloader: downloader) { await downloader.close() }
    #endif
    case .session:
      var configuration = SessionDownloader.Configuration()
      configuration.connectionsPerHost = connections ?? configuration.connectionsPerHost
      let downloader = SessionDownloader(configuration: configuration)
      return OpenDownloader(downloader: downloader) { downloader.close() }
    }
  }
}

/// A downloader, and how it is closed.
struct OpenDownloader: Sendable {
  let downloader: any Downloader
  let close: @Sendable () async -> Void
}

/// One of the ways that are compared, by name: what a measuring process is told.
struct ClientKind: Codable, Hashable, Sendable {
  /// How much of this package the bytes go through.
  enum Layer: String, Codable, Sendable {
    /// None: the library that the engine is built on.
    case bare
    /// The engine alone.
    case engine
    /// The manager, with a validator and a memory store that is empty at the start.
    case manager
    /// The manager, with a validator and no store.
    case managerWithoutStore
  }

  let engine: Engine
  let layer: Layer

  /// What its line is called.
  var name: String {
    switch layer {
    case .bare: "\(engine.peer), bare"
    case .engine: "\(engine.name) alone"
    case .manager: "\(engine.name), the whole facade"
    case .managerWithoutStore: "  without a memory store"
    }
  }

  func make() throws -> any Client {
    switch layer {
    case .bare:
      switch engine {
      #if AsyncHTTP
      case .asyncHTTP: return BareAsyncHTTPClient()
      #endif
      case .session: return BareSession()
      }
    case .engine: return EngineClient(try engine.makeDownloader())
    case .manager, .managerWithoutStore:
      let open = try engine.makeDownloader()
      var configuration = ResourceManager.Configuration()
      configuration.downloader = open.downloader
      configuration.validator = ETagValidator()
      if layer == .manager { configuration.memory = MemoryCache() }
      return ManagerClient(ResourceManager(configuration), open)
    }
  }
}
#endif
