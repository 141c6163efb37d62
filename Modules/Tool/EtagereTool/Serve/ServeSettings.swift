#if Tool && Service
import CommandIO
import Configuration
import Foundation
import HTTPServing
import HTTPTypes
import ImageService
import SystemPackage

/// A setting that is not valid. The reason names it and its source.
struct SettingsError: Error {
  var reason: String
}

/// The settings of `etagere-cli serve`.
struct ServeSettings: Sendable {
  var listen = HostAndPort(host: "127.0.0.1", port: 8080)
  var admin: HostAndPort?
  var path = "/img"
  var origins: [String] = []
  var folders: [String] = []
  var presets: [String: String] = [:]
  var keys: [SigningKey] = []
  var cacheControl = "max-age=60"
  var cacheFolder: String?
  var cacheSize = 1 << 30
  var redis: String?
  var memory = 256 << 20
  var memoryBudget = 256 << 20
  /// The number of codec workers, or 0 for none.
  var workers = CodecWorkers.isSupported ? CodecWorkers.Configuration().count : 0
  var workerMemory = CodecWorkers.Configuration().memoryLimit
  var workerPriority = CodecWorkers.Priority.background
  var formats: [ImageFormat] = [.webp]
  var limits = ImageService.Limits()
  var allowsPartial = false
  var fastShrinkOnLoad = false
  var clientField: HTTPField.Name?
  var maximumConnections = 10_000
  var allowsPrivateAddresses = false
  var hasAccessLog = true
  var hasDemo = false
  var drainTime: Duration = .seconds(1)

  /// The limit of connections to the port of `admin`.
  static let adminConnections = 100

  /// The names of the settings in the file. The keys have no flag.
  private static let names = ServeFlags.names.union(["keys"])

  /// Reads the settings from flags, the environment and a file. The first one that has a setting decides.
  ///
  /// - Throws: `SettingsError`.
  static func read(
    file: String?, flags: [String: ConfigValue], environment: [String: String] = ProcessInfo.processInfo.environment
  ) async throws -> ServeSettings {
    var providers: [any ConfigProvider] = [
      InMemoryProvider(
        name: "flags", values: Dictionary(uniqueKeysWithValues: flags.map { (AbsoluteConfigKey([$0]), $1) })),
      // Operations contain commas.
      EnvironmentVariablesProvider(environmentVariables: environment, arraySeparator: ";").prefixKeys(with: "etagere"),
    ]
    if let file {
      try check(file)
      do {
        providers.append(try await FileProvider<JSONSnapshot>(filePath: FilePath(file)))
      } catch {
        throw SettingsError(reason: "cannot read the settings '\(file)': \(error)")
      }
    }
    var settings = ServeSettings()
    try settings.read(SettingsReader(ConfigReader(providers: providers)))
    return settings
  }

  /// Refuses names that are no settings: a setting with a typing error must not be ignored.
  private static func check(_ file: String) throws {
    let content: Any
    do {
      content = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: file)))
    } catch {
      throw SettingsError(reason: "cannot read the settings '\(file)': \(FileReason(error))")
    }
    guard let object = content as? [String: Any] else {
      throw SettingsError(reason: "the settings '\(file)' are not a JSON object")
    }
    if let unknown = object.keys.sorted().first(where: { !names.contains($0) }) {
      throw SettingsError(reason: "unknown setting '\(unknown)' in '\(file)'")
    }
    if object["keys"] != nil { warn(ofKeysIn: file) }
  }

  /// Warns of a file with keys that is open to other users, by the rule of ssh. The service starts all the same, because
  /// container platforms mount such files.
  private static func warn(ofKeysIn file: String) {
    guard InputFile(file).isOpenToOthers else { return }
    Console.complain("warning: other users can read or write the keys in '\(file)' (see 'chmod 600')")
  }

  private mutating func read(_ reader: SettingsReader) throws {
    try reader.value("listen", "a host and a port, such as 127.0.0.1:8080", Self.address).map { listen = $0 }
    admin = try reader.value("admin", "a host and a port, such as 127.0.0.1:9090", Self.address)
    try reader.text("path").map { path = $0 }
    try reader.list("origins").map { origins = $0 }
    try reader.list("folders").map { folders = $0 }
    for text in try reader.list("presets") ?? [] {
      let pair = text.split(separator: "=", maxSplits: 1).map(String.init)
      guard pair.count == 2 else { throw reader.invalid("presets", text, "a name, '=' and operations") }
      presets[pair[0]] = pair[1]
    }
    keys = try readKeys(reader)
    try reader.text("cacheControl").map { cacheControl = $0 }
    cacheFolder = try reader.path("cacheFolder")
    redis = try reader.text("redis")
    let size = "a size in bytes, or with K, M or G"
    try reader.value("cacheSize", size, ByteCount.parse).map { cacheSize = $0 }
    try reader.value("memory", size, ByteCount.parse).map { memory = $0 }
    try reader.value("memoryBudget", size, ByteCount.parse).map { memoryBudget = $0 }
    try reader.integer("workers", 0...(CodecWorkers.isSupported ? 1_024 : 0)).map { workers = $0 }
    try reader.value("workerMemory", "a size of at least 16M") { ByteCount.parse($0).flatMap { $0 >= 16 << 20 ? $0 : nil } }.map {
      workerMemory = $0
    }
    try reader.value("workerPriority", "normal or background", CodecWorkers.Priority.init).map { workerPriority = $0 }
    try reader.value("maxBytes", size, ByteCount.parse).map { limits.sourceBytes = $0 }
    try reader.formats("formats", [.avif, .webp]).map { formats = $0 }
    try reader.formats("sourceFormats", Set.fitForUntrustedFiles.union([.svg])).map { limits.sourceFormats = Set($0) }
    try reader.boolean("allowPartial").map { allowsPartial = $0 }
    try reader.boolean("fastShrinkOnLoad").map { fastShrinkOnLoad = $0 }
    try reader.integer("maxSide", 1...32_768).map { limits.maximumSide = $0 }
    try reader.integer("maxPixels", 1...1_000_000_000).map { limits.sourcePixels = $0 }
    try reader.integer("timeout", 1...3_600).map { limits.timeout = .seconds($0) }
    try reader.integer("refusalTime", 1...86_400).map { limits.refusalLifetime = .seconds($0) }
    try reader.integer("drainTime", 0...300).map { drainTime = .seconds($0) }
    try reader.integer("maxResults", 1...1_000_000).map { limits.resultsInProgress = $0 }
    try reader.integer("maxConnections", 1...1_000_000).map { maximumConnections = $0 }
    try reader.value("clientRate", "a positive number") { Double($0).flatMap { $0 > 0 && $0.isFinite ? $0 : nil } }.map {
      limits.clientRate = .init(perSecond: $0, burst: max(1, Int(min($0, 1e6).rounded(.up))))
    }
    clientField = try reader.value("clientField", "the name of a header field") { HTTPField.Name($0) }
    try reader.boolean("privateAddresses").map { allowsPrivateAddresses = $0 }
    try reader.boolean("accessLog").map { hasAccessLog = $0 }
    try reader.boolean("demo").map { hasDemo = $0 }
  }

  /// Lowers the limit of client connections to what a limit of open descriptors allows, beside the connections to origins and the
  /// files of sources and of the cache.
  mutating func limitConnections(descriptors: Int) {
    maximumConnections = DescriptorLimit.connections(
      within: descriptors, wanted: maximumConnections,
      reserved: 256 + (admin == nil ? 0 : Self.adminConnections) + max(0, 4 * workers - 64),
      each: cacheFolder == nil && folders.isEmpty ? 1 : 2)
  }

  /// Returns the address in a text. Without a host, the text means all addresses of the machine, so it is refused: operators
  /// must not open the port for purges to a network by accident.
  private static func address(_ text: String) -> HostAndPort? {
    text.hasPrefix(":") || text.hasPrefix("[]") ? nil : HostAndPort(text)
  }

  private func readKeys(_ reader: SettingsReader) throws -> [SigningKey] {
    var keys: [SigningKey] = []
    for text in try reader.list("keys") ?? [] { keys += try Self.keys(in: Data(text.utf8), of: "the setting 'keys'") }
    if let file = try reader.path("keysFile") {
      let list: Data
      do throws(CacheError) {
        list = try InputFile(file).read(limit: 1 << 20)
      } catch {
        throw SettingsError(reason: "cannot read the keys '\(file)': \(error.reason)")
      }
      Self.warn(ofKeysIn: file)
      keys += try Self.keys(in: list, of: "the keys '\(file)'")
    }
    return keys
  }

  /// Reads the keys of a list, one on each line. An error does not contain the key.
  private static func keys(in list: Data, of name: String) throws -> [SigningKey] {
    try ListLine.all(in: list).map { line in
      guard let text = line.text else { throw SettingsError(reason: "\(name), line \(line.number): not UTF-8 text") }
      do throws(CacheError) {
        return try SigningKey(hexadecimal: text)
      } catch {
        throw SettingsError(reason: "\(name), line \(line.number): \(error.reason)")
      }
    }
  }

  /// Returns the configuration of the service, without the components of its cache.
  func configuration() throws(CacheError) -> ImageService.Configuration {
    var configuration = ImageService.Configuration()
    configuration.keys = keys
    for text in origins {
      var source = try ImageSource.origin(text)
      source.cacheControl = cacheControl
      configuration.sources.append(source)
    }
    for text in folders {
      let pair = text.split(separator: "=", maxSplits: 1).map(String.init)
      guard pair.count == 2 else {
        throw CacheError(.invalidConfiguration, reason: "the folder '\(text)' is not a name, '=' and a path")
      }
      var source = try ImageSource.folder(pair[1], named: pair[0])
      source.cacheControl = cacheControl
      configuration.sources.append(source)
    }
    configuration.presets = presets
    configuration.pathPrefix = path
    configuration.formats = formats
    configuration.limits = limits
    configuration.allowsPartial = allowsPartial
    configuration.fastShrinkOnLoad = fastShrinkOnLoad
    configuration.addresses = allowsPrivateAddresses ? nil : .publicOnly
    configuration.cache.memoryBudget = memoryBudget
    return configuration
  }
}

/// Values of settings as text, whatever their source.
private struct SettingsReader {
  private let reader: ConfigReader

  /// The settings that a log must not state. The URL of a Redis server can have a password.
  private static let secrets: Set<String> = ["keys", "redis"]

  init(_ reader: ConfigReader) { self.reader = reader }

  func invalid(_ name: String, _ value: String, _ expected: String) -> SettingsError {
    SettingsError(reason: "the setting '\(name)' is '\(value)' and needs \(expected)")
  }

  func text(_ name: String) throws -> String? {
    let key = ConfigKey([name])
    // A file may have a number or a Boolean value, for which the reader has no text.
    if let text = reader.string(forKey: key, isSecret: Self.secrets.contains(name)) { return text }
    if let number = reader.int(forKey: key) { return "\(number)" }
    if let number = reader.double(forKey: key) { return "\(number)" }
    if let isTrue = reader.bool(forKey: key) { return "\(isTrue)" }
    guard reader.stringArray(forKey: key) == nil else { throw SettingsError(reason: "the setting '\(name)' is not one value") }
    return nil
  }

  func path(_ name: String) throws -> String? { try value(name, "a path") { $0.isEmpty ? nil : $0 } }

  func list(_ name: String) throws -> [String]? {
    reader.stringArray(forKey: ConfigKey([name]), isSecret: Self.secrets.contains(name))
  }

  /// Reads the names of formats, which are a list or one text with commas.
  func formats(_ name: String, _ allowed: Set<ImageFormat>) throws -> [ImageFormat]? {
    guard let names = try list(name) ?? text(name).map({ [$0] }) else { return nil }
    let known = Dictionary(uniqueKeysWithValues: allowed.map { ($0.name.lowercased(), $0) })
    return try names.flatMap { $0.split(separator: ",") }.map { text in
      guard let format = known[text.trimmingCharacters(in: .whitespaces).lowercased()] else {
        throw invalid(name, String(text), "names of " + known.keys.sorted().joined(separator: ", "))
      }
      return format
    }
  }

  func value<Value>(_ name: String, _ expected: String, _ parse: (String) -> Value?) throws -> Value? {
    guard let text = try text(name) else { return nil }
    guard let value = parse(text) else { throw invalid(name, text, expected) }
    return value
  }

  func boolean(_ name: String) throws -> Bool? {
    // On Linux, Foundation reads the Boolean values of JSON as numbers.
    try value(name, "true or false") { ["true": true, "1": true, "false": false, "0": false][$0] }
  }

  func integer(_ name: String, _ range: ClosedRange<Int>) throws -> Int? {
    try value(name, "an integer from \(range.lowerBound) to \(range.upperBound)") { text in
      Int(text).flatMap { range.contains($0) ? $0 : nil }
    }
  }
}

/// A number of bytes as text: `4096`, `64K`, `256M`, `2G`.
enum ByteCount {
  static func parse(_ text: String) -> Int? {
    let units: [Character: Int] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
    let unit = text.uppercased().last.flatMap { units[$0] }
    guard let count = Int(unit == nil ? text : String(text.dropLast())), count > 0 else { return nil }
    let (bytes, isTooLarge) = count.multipliedReportingOverflow(by: unit ?? 1)
    return isTooLarge ? nil : bytes
  }
}
#endif
