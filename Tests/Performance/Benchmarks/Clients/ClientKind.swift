#if Origin
import CacheCore
import CacheManager
import CacheNetworking
import ETagValidation
import MemoryStore
#if AsyncHTTP
import AsyncHTTPNetworking
#endif

/// The HTTP engine of a client.
enum Engine: String, Codable, CaseIterable, Sendable {
  #if AsyncHTTP
  case asyncHTTP
  #endif
  case session

  /// The library below the engine, which is its peer.
  var peer: String {
    switch self {
    #if AsyncHTTP
    case .asyncHTTP: "async-http-client"
    #endif
    case .session: "URLSession"
    }
  }

  /// The module with the package's engine.
  var name: String {
    switch self {
    #if AsyncHTTP
    case .asyncHTTP: "AsyncHTTPNetworking"
    #endif
    case .session: "CacheNetworking"
    }
  }

  /// Creates a downloader of this package.
  ///
  /// - Parameter connections: The maximum number of connections to a host, or `nil` for the engine's default.
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

/// A downloader and the function that closes it.
struct OpenDownloader: Sendable {
  let downloader: any Downloader
  let close: @Sendable () async -> Void
}

/// The description of a client, which is passed to a measuring process.
struct ClientKind: Codable, Hashable, Sendable {
  /// The part of this package that a load runs through.
  enum Layer: String, Codable, Sendable {
    /// No part of the package: the library below the engine.
    case bare
    /// No part of the package, and a dictionary that keeps each body.
    case bareWithDictionary
    /// The engine without a manager.
    case engine
    /// A manager with a validator and an empty memory store.
    case manager
    /// A manager with a validator and no store.
    case managerWithoutStore
  }

  let engine: Engine
  let layer: Layer

  /// The name of the client's row.
  var name: String {
    switch layer {
    case .bare: "\(engine.peer) alone"
    case .bareWithDictionary: "\(engine.peer), a dictionary of bodies"
    case .engine: "\(engine.name) alone"
    case .manager: "\(engine.name), ResourceManager"
    case .managerWithoutStore: "\(engine.name), ResourceManager without a store"
    }
  }

  func make() throws -> any Client {
    switch layer {
    case .bare, .bareWithDictionary:
      let keepsBodies = layer == .bareWithDictionary
      switch engine {
      #if AsyncHTTP
      case .asyncHTTP: return BareAsyncHTTPClient(keepsBodies: keepsBodies)
      #endif
      case .session: return BareSession(keepsBodies: keepsBodies)
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
