#if Service
public import CacheCore
public import CacheManager
internal import CacheTransport
public import ImageCodecs
public import ImageWorkers

extension ImageService {
  /// The keys, sources, presets and limits of a service, and the components of its cache.
  public struct Configuration: Sendable {
    /// The keys whose signatures are accepted. To replace a key, add the new one, sign with it, and remove the old one when its
    /// URLs are no longer used.
    public var keys: [SigningKey] = []
    /// The allowed sources. Other sources are refused.
    public var sources: [ImageSource] = []
    /// The operations of each preset, by name: `["avatar": "fill=96x96,circle"]` for `preset=avatar`. A preset replaces the
    /// settings before it and adds its steps.
    public var presets: [String: String] = [:]
    /// The path below which the service responds, without a slash at the end.
    public var pathPrefix = "/img"
    /// The formats of results without `format=`, best first. The first one that the client's `Accept` names is taken, or else
    /// JPEG, or PNG for an image with transparency. A format that the platform's engine does not write is left out: WebP on
    /// Apple platforms. AVIF files are smaller than WebP files, and take several times as long to make.
    public var formats: [ImageFormat] = [.webp]
    /// Whether a truncated or damaged source is drawn as far as possible. By default it gets 422.
    public var allowsPartial = false
    /// Whether JPEG sources are shrunk as far as their codec can: see `ImageDecoder.fastShrinkOnLoad`. It makes results of
    /// photographs in about 12 % less time, which lose 0.3 dB or less. Lossless results lose more.
    public var fastShrinkOnLoad = false
    /// The addresses that origins may have, or `nil` if only the downloader decides. The default protects the network of the
    /// service. A name is checked before the connection, so set the downloader's `addressPolicy` too, which checks the connected
    /// address.
    public var addresses: AddressPolicy? = .publicOnly
    /// The limits.
    public var limits = Limits()
    /// The components of the cache: the downloader for origins, the memory store, the durable store, the fleet, the validator,
    /// the observer, the clock and the memory budget. Without a validator, the service uses that of a shared cache.
    ///
    /// Results are stored in memory and in the durable store. Sources are stored in the durable store only, and files of a folder
    /// are not stored. The time that a request waits for an equal one is at least ``Limits/timeout``.
    ///
    /// Without an executor, images are made beside the cooperative pool, in as many threads as there are workers or cores.
    public var cache = ResourceManager.Configuration()

    /// The processes in which images are decoded, processed and encoded, or `nil` for this process. Use them for images of
    /// strangers: see <doc:/ImageService/CodecWorkers>.
    public var workers: CodecWorkers?
    /// Receives the error of each image whose codec crashed, or needed too much time or memory. Its `url` is the source as in a
    /// path. Only a service with ``workers`` calls it.
    public var onCodecFailure: (@Sendable (CacheError) -> Void)?

    /// Creates a configuration without keys and sources.
    public init() {}

    /// Creates a configuration without keys and sources, and applies `change`.
    ///
    /// - Throws: The error of `change`.
    public init<Failure: Error>(_ change: (inout Configuration) throws(Failure) -> Void) throws(Failure) { try change(&self) }
  }

  /// The limits of a service. With a number out of its range, no service is created.
  public struct Limits: Hashable, Codable, Sendable {
    /// The largest side that a URL can request, in pixels, from 1 to 65,535. An enlarged image has no larger side.
    public var maximumSide = 4_096
    /// The largest source, in bytes, at least 1.
    public var sourceBytes = 64 << 20
    /// The largest source, in pixels, from 1 to 1,000,000,000. No step makes a larger image.
    public var sourcePixels = 50_000_000
    /// The formats of sources that are decoded. Sources of other formats get 422. Add `ImageFormat.svg` only if all sources
    /// are trusted.
    public var sourceFormats = Set<ImageFormat>.fitForUntrustedFiles
    /// The time for a result, greater than zero, including the waits for memory and for a processor. A codec that takes longer is
    /// ended if it runs in a worker. In this process it cannot be stopped within one call, and ends later. For an original, it is
    /// the time between two parts from the origin.
    public var timeout: Duration = .seconds(30)
    /// The time for which an image is refused after its codec crashed or needed too much time or memory, greater than zero. See
    /// <doc:/ImageService/CodecWorkers>.
    public var refusalLifetime: Duration = .seconds(600)
    /// The number of results that are being made or waiting, at least 1. Further requests get 503 with `Retry-After`. Originals
    /// are not counted.
    public var resultsInProgress = 512
    /// The rate of requests of each client, or `nil` for no limit. Further requests get 429 with `Retry-After`.
    public var clientRate: Rate?

    /// Creates the default limits, and applies `change`.
    public init(_ change: (inout Limits) -> Void = { _ in }) { change(&self) }

    /// The limits of decoding.
    var image: ImageLimits {
      ImageLimits {
        $0.bytes = sourceBytes
        $0.pixels = sourcePixels
        $0.time = timeout
        $0.formats = sourceFormats
      }
    }

    /// - Throws: `CacheError.Code.invalidConfiguration` with the name and the value of a limit that is out of range.
    func check() throws(CacheError) {
      try CacheError.require("maximumSide", maximumSide, in: 1...65_535)
      try CacheError.require("sourceBytes", sourceBytes, in: 1...)
      try CacheError.require("sourcePixels", sourcePixels, in: 1...1_000_000_000)
      try CacheError.require("timeout", positive: timeout)
      try CacheError.require("refusalLifetime", positive: refusalLifetime)
      try CacheError.require("resultsInProgress", resultsInProgress, in: 1...)
      if let clientRate { try RateLimit.check(perSecond: clientRate.perSecond, burst: clientRate.burst) }
    }
  }

  /// The rate of requests that a client may send.
  public struct Rate: Hashable, Codable, Sendable {
    /// The number of requests per second, from 0.001 to 1,000,000,000.
    public var perSecond: Double
    /// The number of requests that may be sent at once after a pause, from 1 to 1,000,000,000.
    public var burst: Int

    /// Creates a rate.
    public init(perSecond: Double, burst: Int) { (self.perSecond, self.burst) = (perSecond, burst) }
  }
}

extension ImageService {
  /// Checks the text of operations, except for the names of presets, which only a service knows.
  ///
  /// - Throws: `CacheError.Code.invalidOperation` with the name of the operation.
  package static func check(_ operations: String) throws(CacheError) {
    let others = operations.split(separator: ",", omittingEmptySubsequences: false).filter { !$0.hasPrefix("preset=") }
    guard !others.isEmpty else { return }
    _ = try ImageOperations(others.joined(separator: ","), maximumSide: 65_535)
  }
}
#endif
