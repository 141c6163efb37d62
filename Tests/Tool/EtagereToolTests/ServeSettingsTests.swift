#if Tool && Service
import CacheTesting
import Configuration
import CoreMetrics
import Foundation
import HTTPServing
import HTTPTypes
import ImageService
import Testing

@testable import EtagereTool

@Suite("etagere-cli serve: settings")
struct ServeSettingsTests {
  private let fixture: ToolFixture

  init() throws { fixture = try ToolFixture() }

  private static func flag(_ text: String) -> ConfigValue { ConfigValue(.string(text), isSecret: false) }

  private func read(
    _ flags: [String: ConfigValue] = [:], _ environment: [String: String] = [:], file: String? = nil
  ) async throws -> ServeSettings {
    let path = try file.map { try fixture.write($0, "settings.json") }
    return try await ServeSettings.read(file: path, flags: flags, environment: environment)
  }

  @Test("a flag comes before the environment, and the environment before the file")
  func order() async throws {
    let file = #"{"path": "/file", "memory": "3M", "maxSide": 30, "accessLog": false, "demo": true, "clientRate": 2.5}"#
    let settings = try await read(
      ["path": "/flag"], ["ETAGERE_PATH": "/environment", "ETAGERE_MEMORY": "2M", "PATH": "/bin"], file: file)
    #expect(settings.path == "/flag")
    #expect(settings.memory == 2 << 20)
    #expect(settings.limits.maximumSide == 30)
    #expect(settings.limits.clientRate == .init(perSecond: 2.5, burst: 3))
    #expect(!settings.hasAccessLog)
    #expect(settings.hasDemo)
    #expect(try await !read().hasDemo)
  }

  @Test("lists come from repeated flags, from the environment with semicolons, and from arrays")
  func lists() async throws {
    let flags = try await read(["presets": ConfigValue(.stringArray(["a=width=4,gray", "b=circle"]), isSecret: false)])
    #expect(flags.presets == ["a": "width=4,gray", "b": "circle"])
    let environment = try await read([:], ["ETAGERE_PRESETS": "a=width=4,gray;b=circle", "ETAGERE_FORMATS": "webp,avif"])
    #expect(environment.presets == flags.presets)
    #expect(environment.formats == [.webp, .avif])
    let file = try await read(
      file: #"{"presets": ["a=width=4,gray", "b=circle"], "origins": ["https://a.example"], "formats": ["avif"]}"#)
    #expect(file.presets == flags.presets)
    #expect(file.origins == ["https://a.example"])
    #expect(file.formats == [.avif])
    #expect(file.limits.sourceFormats == .fitForUntrustedFiles && !file.allowsPartial)
    let open = try await read(file: #"{"sourceFormats": ["svg", "png"], "allowPartial": true, "fastShrinkOnLoad": true}"#)
    #expect(open.limits.sourceFormats == [.svg, .png] && open.allowsPartial)
    #expect(try open.configuration().fastShrinkOnLoad && !file.configuration().fastShrinkOnLoad)
  }

  @Test("few descriptors limit the connections, and leave some for files and origins")
  func descriptors() {
    for (descriptors, folders, admin, connections) in [
      (1_048_576, ["a=/b"], nil, 10_000), (1_024, [], nil, 768), (1_024, ["a=/b"], nil, 384), (1_024, [], "127.0.0.1:1", 668),
    ] {
      var settings = ServeSettings()
      settings.admin = admin.flatMap { HostAndPort($0) }
      settings.folders = folders
      settings.limitConnections(descriptors: descriptors)
      #expect(settings.maximumConnections == connections)
    }
  }

  @Test("keys come from the environment, the file and a file of keys")
  func keys() async throws {
    let (one, two) = (String(repeating: "01", count: 32), String(repeating: "02", count: 32))
    let keysFile = try fixture.write("# the new key\n\n \(two) \n", "keys")
    let settings = try await read([:], ["ETAGERE_KEYS": one, "ETAGERE_KEYS_FILE": keysFile])
    #expect(settings.keys.map { $0.path(for: "a/b", operations: "gray") }.count == 2)
    #expect(try await read(file: #"{"keys": ["\#(one)"]}"#).keys.count == 1)
  }

  @Test(
    "a setting that is not valid is named",
    arguments: [
      ("listen", "8080"), ("listen", "a:99999"), ("admin", ":1"), ("memory", "much"), ("memory", "0"),
      ("cacheSize", "9999999999G"),
      ("maxSide", "0"), ("maxSide", "4.5"), ("timeout", "-1"), ("clientRate", "0"), ("clientRate", "nan"), ("clientField", "a b"),
      ("formats", "gif"), ("sourceFormats", "pdf"), ("allowPartial", "maybe"), ("accessLog", "maybe"), ("demo", "maybe"),
      ("privateAddresses", ""), ("timeout", "9223372036854775808"), ("timeout", "1e400"), ("drainTime", "-1"),
      ("memory", "9223372036854775807K"), ("memory", "-1"), ("maxBytes", "1e400"), ("maxResults", "9223372036854775808"),
      ("clientRate", "1e400"), ("clientRate", "-inf"), ("cacheFolder", ""), ("keysFile", ""),
    ])
  func invalid(_ name: String, _ value: String) async throws {
    let error = await #expect(throws: SettingsError.self) { try await read([name: Self.flag(value)]) }
    #expect(error?.reason.contains("'\(name)'") == true)
  }

  @Test(
    "a file that is not valid is an error with its path",
    arguments: [
      "", "[]", "{", #"{"lisen": "a:1"}"#, #"{"path": ["a"]}"#, #"{"presets": ["a"]}"#, #"{"keys": ["xyz"]}"#,
      #"{"timeout": 1e400}"#, #"{"timeout": -1e300}"#, #"{"maxSide": 1e30}"#, #"{"maxPixels": 9223372036854775808}"#,
      #"{"memory": 1e300}"#, #"{"memory": -9223372036854775808}"#, #"{"clientRate": -1e300}"#, #"{"cacheFolder": ""}"#,
    ])
  func invalidFile(_ text: String) async throws {
    await #expect(throws: SettingsError.self) { try await read(file: text) }
  }

  @Test("an invalid key in a file is reported with its line, and the list may have a byte order mark and CRLF")
  func keyLines() async throws {
    let key = String(repeating: "01", count: 32)
    let good = try fixture.write("\u{FEFF}\(key)\r\n\r\n# old\r\n\(key)\r\n", "good")
    #expect(try await read(["keysFile": Self.flag(good)]).keys.count == 2)
    let bad = try fixture.write("\(key)\n\nc0ffeX\n", "bad")
    let error = await #expect(throws: SettingsError.self) { try await read(["keysFile": Self.flag(bad)]) }
    #expect(error?.reason.hasPrefix("the keys '\(bad)', line 3: ") == true && error?.reason.contains("c0ffeX") == false)
  }

  @Test("the error of an invalid key does not contain the key")
  func secrecy() async throws {
    let error = await #expect(throws: SettingsError.self) { try await read([:], ["ETAGERE_KEYS": "c0ffeX"]) }
    #expect(error?.reason.contains("c0ffeX") == false)
  }

  @Test("addresses have a host and a port", arguments: ["127.0.0.1:0", "[::1]:80", "localhost:65535"])
  func address(_ text: String) { #expect(HostAndPort(text)?.description == text) }

  @Test(
    "an address with brackets that are not those of an IPv6 address, or without a port, is refused",
    arguments: ["[[]]:8", "[]:8", "[localhost]:80", "[::1:80", "::1]:80", "::1:80", "h:+8", "h:", "h:65536", "h", ""])
  func noAddress(_ text: String) { #expect(HostAndPort(text) == nil) }
}

@Suite("etagere-cli serve: metrics")
struct PrometheusMetricsTests {
  @Test("counters, gauges and histograms are written in the text format of Prometheus")
  func text() {
    let metrics = PrometheusMetrics()
    metrics.makeCounter(label: "requests-sent", dimensions: [("path", "a\"b\\c\n"), ("x.y", "1")]).increment(by: 3)
    metrics.makeCounter(label: "requests-sent", dimensions: [("path", "a\"b\\c\n"), ("x.y", "1")]).increment(by: 1)
    metrics.makeMeter(label: "running", dimensions: []).set(2.5)
    let timer = metrics.makeTimer(label: "time", dimensions: [("route", "r")])
    timer.recordNanoseconds(2_000_000)
    timer.recordNanoseconds(60_000_000_000)
    let lines = metrics.text(gauges: ["results": 7], counts: ["failures": 5]).split(separator: "\n")
    for line in [
      "# TYPE results gauge", "results 7", "# TYPE failures counter", "failures 5", "# TYPE requests_sent counter",
      #"requests_sent{path="a\"b\\c\n",x_y="1"} 4"#,
      "# TYPE running gauge", "running 2.5", "# TYPE time histogram", #"time_bucket{route="r",le="0.001"} 0"#,
      #"time_bucket{route="r",le="0.005"} 1"#, #"time_bucket{route="r",le="30.0"} 1"#, #"time_bucket{route="r",le="+Inf"} 2"#,
      #"time_sum{route="r"} 60.002"#, #"time_count{route="r"} 2"#,
    ] { #expect(lines.contains(Substring(line)), "\(line)") }
  }
}
#endif
