// The imports and the names that the blocks of doc comments take for granted: Scripts/check-snippets compiles them with these.

@_exported public import AsyncHTTPNetworking
@_exported public import CacheCombine
@_exported public import CacheTelemetry
@_exported public import CacheTesting
@_exported public import CacheUI
@_exported public import Dispatch
@_exported public import Etagere
@_exported public import Foundation
@_exported public import ImageService
@_exported public import Logging
@_exported public import LoopbackOrigin
@_exported public import RedisStore
@_exported public import SQLiteStore
@_exported public import StoreComposition
@_exported public import Testing

#if canImport(FoundationNetworking)
@_exported public import FoundationNetworking
#endif

/// Nothing of this runs.
public func given<Value>() -> Value { fatalError() }

// MARK: Functions of a client

public func show(_ value: Any) {}
public func showPlaceholder() {}
public func report(_ error: any Error) {}
public func send(_ value: Any) {}
public func load(_ url: URL) async throws -> Data { given() }

// MARK: Components

public var service: ImageService { given() }
public var manager: ResourceManager { given() }
public var configuration: ResourceManager.Configuration {
  get { given() }
  set {}
}
public var options: RequestOptions {
  get { given() }
  set {}
}
public var engine: any Downloader { given() }
public var network: ScriptedDownloader { given() }
public var origin: OriginServer { given() }
public var watcher: Watcher { given() }
public var signature: RequestInterceptor { given() }
public var cache: any CacheStore { given() }
public var store: any CacheStore { given() }
public var validator: ETagValidator { given() }
public var clock: any CacheClock { given() }
public typealias MyEngine = ScriptedDownloader
public typealias MyMemory = MemoryCache
public typealias MyStore = VolatileStore
public typealias MyValidator = ETagValidator

// MARK: Requests and responses

public var url: URL { given() }
public var urls: [URL] { given() }
public var elsewhere: URL { given() }
public var preview: URL { given() }
public var news: URL { given() }
public var folder: URL { given() }
public var caches: URL { given() }
public var shipped: URL { given() }
public var fixtures: URL { given() }
public var request: HTTPRequest { given() }
public var urlRequest: URLRequest {
  get { given() }
  set {}
}
public var response: DownloadResponse { given() }
public var error: CacheError { given() }
public var key: CacheKey { given() }
public var metadata: StoredMetadata { given() }
public var stored: [StoredMetadata] { given() }
public var now: Timestamp { given() }
public var bytes: Data { given() }
public var body: Data { given() }
public var json: Data { given() }
public var avatar: Data { given() }

// MARK: Values

public var image: DecodedImage { given() }
public var thumbnail: ResourceTransform<DecodedImage> { given() }
public var greeting: ResourceTransform<String> { given() }

public struct UTF8Text: ResourceDecoder {
  public let id = ComponentID(UTF8Text.self, parameters: "utf8")
  public init() {}
  public func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> String { given() }
  public func cost(of value: String) -> Int { value.utf8.count }
}

public struct Photo: Sendable {}

public struct PhotoDecoder: ResourceDecoder {
  public let id = ComponentID.unique(PhotoDecoder.self)
  public init() {}
  public func decode(_ data: Data, _ metadata: StoredMetadata) throws(CacheError) -> Photo { given() }
  public func cost(of value: Photo) -> Int { 0 }
}

public struct Resize: ResourceProcessor {
  public let id = ComponentID.unique(Resize.self)
  public init(to side: Int) {}
  public func process(_ value: Photo, _ metadata: StoredMetadata) throws(CacheError) -> Photo { value }
}

public struct JPEG: ResourceEncoder {
  public let id = ComponentID.unique(JPEG.self)
  public init(quality: Double) {}
  public func encode(_ value: Photo, _ metadata: StoredMetadata) throws(CacheError) -> Data { given() }
}

// MARK: The client's surroundings

public struct Bar: Sendable {
  public var fraction: Double? {
    get { nil }
    nonmutating set {}
  }
}

public struct View: Sendable {
  public func show(_ value: Any) {}
}

public struct File: Sendable {
  public var size: Int64? { nil }
  public func close() {}
  public func read(_ count: Int) async throws -> Data? { nil }
  public func write(_ data: Data) async throws {}
}

public final class Watcher: Sendable {
  public func note(_ text: String) {}
  public func decrypt(_ data: Data) async throws -> Data { data }
}

public actor Tokens {
  public func current() throws -> String { "" }
}

public actor Library {
  public func jpeg(named name: String) throws -> Data { given() }
}

public actor Database {
  public func replace(_ key: CacheKey, _ metadata: StoredMetadata, _ body: Data) throws(CacheError) {}
}

public actor Keychain {
  public func credential(for host: String) -> URLCredential? { nil }
}

@MainActor
public final class FakeImageView: ImageLoadingView {
  public var viewImageLoader: ViewImageLoader<DisplayImage> { given() }
}

@MainActor public var imageView: FakeImageView { given() }
@MainActor public var binding: ImageBinding { given() }
public var bar: Bar { given() }
public var view: View { given() }
public var row: Int { given() }
public var file: File { given() }
public var tokens: Tokens { given() }
public var library: Library { given() }
public var database: Database { given() }
public var keychain: Keychain { given() }
@MainActor public var cancellables: Set<AnyCancellable> {
  get { [] }
  set {}
}
