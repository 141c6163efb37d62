#if Tool && Service
import ArgumentParser
import Configuration
import Foundation
import HTTPServing
import ImageService

/// The command `etagere-cli serve`, an image service.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Serve resized and converted images of origins and folders.",
    discussion: """
      Responds to /img/SIGNATURE/OPERATIONS/SOURCE: see 'etagere-cli sign --help'. /healthz responds with 200 while \
      the process runs, and /readyz while it accepts work.

      A setting comes from a flag, or else from an environment variable (ETAGERE_CACHE_FOLDER for --cache-folder), or else from \
      the JSON file of --config ("cacheFolder"). Signing keys come from ETAGERE_KEYS, "keys" or --keys-file. No flag has a key \
      itself, because other users of the machine can read flags.

      SIGHUP reads the keys again. SIGTERM and SIGINT end the process after the drain time and the running requests, which have \
      30 seconds.
      """)

  @Option(help: ArgumentHelp("A JSON file with settings.", valueName: "file"), completion: .file(), transform: Text.path)
  var config: String?

  @OptionGroup(title: "Settings") var flags: ServeFlags

  /// Runs the process as a codec worker if `serve` has started it.
  static func runIfWorker() { ImageService.runIfWorker() }

  func run() async throws {
    var settings: ServeSettings
    do {
      settings = try await ServeSettings.read(file: config, flags: flags.values)
    } catch let error as SettingsError {
      Console.complain(error.reason)
      throw ToolFailure(status: .usage)
    }
    let wanted = settings.maximumConnections
    settings.limitConnections(descriptors: DescriptorLimit.raise())
    do {
      let file = config
      let flags = flags.values
      let server = try ImageServer(settings)
      if settings.maximumConnections < wanted {
        Console.complain("the limit of open files allows \(settings.maximumConnections) connections: raise it (ulimit -n)")
      }
      try await server.run { try await ServeSettings.read(file: file, flags: flags).keys }
    } catch let error as CacheError {
      Console.complain("\(error)")
      switch error.code {
      case .invalidConfiguration: throw ToolFailure(status: .usage)
      case .cannotListen: throw ToolFailure(status: .unavailable)
      default: throw ToolFailure(status: ExitStatus(error))
      }
    } catch let error as SettingsError {
      Console.complain(error.reason)
      throw ToolFailure(status: .usage)
    }
  }
}

/// The flags of the settings. A flag that is not given leaves the setting to the environment and the file.
struct ServeFlags: ParsableArguments {
  @Option(
    help: ArgumentHelp("The address to listen on (default: 127.0.0.1:8080). Port 0 selects a free port.", valueName: "host:port"))
  var listen: String?

  @Option(
    help: ArgumentHelp("The address of /metrics, for Prometheus, and of /purge (default: none).", valueName: "host:port"))
  var admin: String?

  @Option(help: ArgumentHelp("The path below which the images are (default: /img).", valueName: "path"))
  var path: String?

  @Option(
    name: .customLong("origin"),
    help: ArgumentHelp(
      "A URL below which sources are allowed, such as https://photos.example.com or https://*.example.com/public. Repeatable.",
      valueName: "url"))
  var origins: [String] = []

  @Option(
    name: .customLong("folder"),
    help: ArgumentHelp("A folder with sources, and its name in URLs. Repeatable.", valueName: "name=path"))
  var folders: [String] = []

  @Option(
    name: .customLong("preset"),
    help: ArgumentHelp("A named list of operations, such as avatar=fill=96x96,circle. Repeatable.", valueName: "name=operations"))
  var presets: [String] = []

  @Option(
    help: ArgumentHelp(
      "A file with signing keys in hexadecimal, one per line, the newest first ('openssl rand -hex 32' makes one).",
      valueName: "file"), completion: .file())
  var keysFile: String?

  @Option(
    help: ArgumentHelp(
      "The Cache-Control of sources that state no lifetime, such as files (default: max-age=60).", valueName: "value"))
  var cacheControl: String?

  @Option(help: ArgumentHelp("The folder of the cache (default: no cache on disk).", valueName: "folder"), completion: .directory)
  var cacheFolder: String?

  @Option(help: ArgumentHelp("The size of the cache on disk, in bytes or with K, M or G (default: 1G).", valueName: "size"))
  var cacheSize: String?

  @Option(
    help: ArgumentHelp(
      "A Redis server that several machines share, such as redis://cache.internal (default: none). A URL with a password belongs in ETAGERE_REDIS or the file.",
      valueName: "url"))
  var redis: String?

  @Option(help: ArgumentHelp("The size of the cache of results in memory (default: 256M).", valueName: "size"))
  var memory: String?

  @Option(help: ArgumentHelp("The memory for the sources and results that are being made (default: 256M).", valueName: "size"))
  var memoryBudget: String?

  @Option(
    help: ArgumentHelp(
      "The processes that decode and encode images, or 0 to do it in the process of the service (default: as many as cores).",
      valueName: "n"))
  var workers: String?

  @Option(
    help: ArgumentHelp(
      "The memory that each worker may use for an image, at least 16M (default: a fifth of the machine's memory, at most 1G).",
      valueName: "size"))
  var workerMemory: String?

  @Option(
    help: ArgumentHelp(
      "The priority of the workers: in the background, images delay no other response (default: background).",
      valueName: "normal|background"))
  var workerPriority: String?

  @Option(
    help: ArgumentHelp(
      "The time for which an image is refused after its codec crashed or needed too much time or memory (default: 600).",
      valueName: "seconds"))
  var refusalTime: String?

  @Option(
    help: ArgumentHelp(
      "The formats that Accept can select if the URL has no format=, best first: avif, webp (default: webp).", valueName: "names")
  )
  var formats: String?

  @Option(
    help: ArgumentHelp(
      "The formats of sources that are decoded (default: avif,gif,heic,jpeg,png,tiff,webp). Without workers, svg is for trusted sources only: its decoder is not made for untrusted files.",
      valueName: "names"))
  var sourceFormats: String?

  @Option(
    help: ArgumentHelp("Draw truncated and damaged sources as far as possible (default: false).", valueName: "true|false"))
  var allowPartial: String?

  @Option(
    help: ArgumentHelp(
      "Shrink JPEG sources as far as their codec can: results take about 12 % less time and lose 0.3 dB or less (default: false).",
      valueName: "true|false"))
  var fastShrinkOnLoad: String?

  @Option(help: ArgumentHelp("The largest side of a result, in pixels (default: 4096).", valueName: "pixels"))
  var maxSide: String?

  @Option(help: ArgumentHelp("The largest source, in pixels (default: 50000000).", valueName: "pixels"))
  var maxPixels: String?

  @Option(help: ArgumentHelp("The largest source, in bytes or with K, M or G (default: 64M).", valueName: "size"))
  var maxBytes: String?

  @Option(help: ArgumentHelp("The limit of the time for a result (default: 30).", valueName: "seconds"))
  var timeout: String?

  @Option(
    help: ArgumentHelp("The largest number of results in progress. Further requests get 503 (default: 512).", valueName: "n"))
  var maxResults: String?

  @Option(
    help: ArgumentHelp(
      "The largest number of requests per second of a client. Further ones get 429 (default: no limit).", valueName: "n"))
  var clientRate: String?

  @Option(
    help: ArgumentHelp(
      "The field in which a proxy states the client's address, such as X-Forwarded-For (default: none).", valueName: "name"))
  var clientField: String?

  @Option(help: ArgumentHelp("The limit of connections (default: 10000).", valueName: "n"))
  var maxConnections: String?

  @Option(help: ArgumentHelp("Allow sources on private addresses (default: false).", valueName: "true|false"))
  var privateAddresses: String?

  @Option(
    help: ArgumentHelp("Write a line of JSON for each request to standard output (default: true).", valueName: "true|false"))
  var accessLog: String?

  @Option(
    help: ArgumentHelp(
      "Serve /demo, a page that signs a URL for every client that can reach it; not for production (default: false).",
      valueName: "true|false"))
  var demo: String?

  @Option(
    help: ArgumentHelp(
      "The time after SIGTERM or SIGINT in which /readyz is 503 and connections are still accepted (default: 1).",
      valueName: "seconds"))
  var drainTime: String?

  /// The names of all settings that have a flag.
  static var names: Set<String> { (try? ServeFlags.parse([])).map { Set($0.lists.keys).union($0.texts.keys) } ?? [] }

  /// The given flags, by the names of their settings.
  var values: [String: ConfigValue] {
    lists.filter { !$0.value.isEmpty }.mapValues { ConfigValue(.stringArray($0), isSecret: false) }
      .merging(texts.compactMapValues { $0.map { ConfigValue(.string($0), isSecret: false) } }) { $1 }
  }

  private var lists: [String: [String]] { ["origins": origins, "folders": folders, "presets": presets] }

  private var texts: [String: String?] {
    [
      "listen": listen, "admin": admin, "path": path, "keysFile": keysFile, "cacheControl": cacheControl,
      "cacheFolder": cacheFolder, "redis": redis, "cacheSize": cacheSize, "memory": memory, "memoryBudget": memoryBudget,
      "workers": workers, "workerMemory": workerMemory, "workerPriority": workerPriority, "refusalTime": refusalTime,
      "formats": formats, "sourceFormats": sourceFormats, "allowPartial": allowPartial, "fastShrinkOnLoad": fastShrinkOnLoad,
      "maxSide": maxSide, "maxPixels": maxPixels, "maxBytes": maxBytes, "timeout": timeout, "maxResults": maxResults,
      "clientRate": clientRate, "clientField": clientField, "maxConnections": maxConnections,
      "privateAddresses": privateAddresses, "drainTime": drainTime, "accessLog": accessLog,
      "demo": demo,
    ]
  }
}
#endif
