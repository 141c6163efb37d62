#if Demo
import Etagere

#if AsyncHTTP && !canImport(Darwin)
import AsyncHTTPNetworking
#elseif Tool && !canImport(Darwin)
#error("the tool needs the trait AsyncHTTP on this platform, because URLSession ends the process on some valid responses")
#endif

/// The downloader of the tool.
///
/// On Linux it is the engine for servers, because `URLSession` ends the process on some valid responses there. That engine does
/// not decode bodies, so it is wrapped in a downloader that asks for compressed responses and decodes them. On Apple platforms,
/// `URLSession` loads and decodes. A build with only the demo uses `URLSession`, too: its origin sends none of those responses.
enum Engine {
  static func make() -> any Downloader {
    #if AsyncHTTP && !canImport(Darwin)
    var configuration = AsyncHTTPDownloader.Configuration()
    configuration.connectionsPerHost = 6
    configuration.userAgent = userAgent
    // Only certificates can make a configuration invalid, and this one has none.
    let downloader = (try? AsyncHTTPDownloader(configuration: configuration)) ?? AsyncHTTPDownloader()
    return downloader.decoding(limit: .max)
    #else
    var configuration = SessionDownloader.Configuration()
    configuration.userAgent = userAgent
    return SessionDownloader(configuration: configuration)
    #endif
  }

  private static var userAgent: String { "etagere/\(EtagereCommand.version)" }
}

/// Runs work for each element, with a limited number at the same time.
struct BoundedLoads {
  var parallel: Int

  func run<Element: Sendable, Output: Sendable>(
    _ elements: [Element], _ work: @escaping @Sendable (Element) async -> Output
  ) async -> [Output] {
    await withTaskGroup(of: Output.self) { group in
      var waiting = elements.makeIterator()
      for _ in 0..<parallel {
        guard let element = waiting.next() else { break }
        group.addTask { await work(element) }
      }
      var outputs: [Output] = []
      while let output = await group.next() {
        outputs.append(output)
        if let element = waiting.next() { group.addTask { await work(element) } }
      }
      return outputs
    }
  }
}
#endif
