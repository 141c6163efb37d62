// A Hummingbird server with an HTTP cache: a caching middleware, and a handler with a cached GET.
// Run it: `swift run --package-path Examples/HummingbirdCache HummingbirdCache`
import AsyncHTTPNetworking
import Foundation
import HTTPTypes
import Hummingbird
import LoopbackOrigin

@main
struct HummingbirdCache {
  static func main() async throws {
    // A stand-in for your upstream server.
    let origin = try await OriginServer.start()
    let fields: HTTPFields = [.cacheControl: "max-age=10"]
    let logo = #"<svg xmlns="http://www.w3.org/2000/svg"><circle r="9"/></svg>"#
    origin.setRoute("/assets/logo.svg", Route(Data(logo.utf8), contentType: "image/svg+xml", etag: "1", fields: fields))
    origin.setRoute("/rates.json", Route(Data(#"{"EUR": 1, "USD": 1.1}"#.utf8), etag: "1", fields: fields))

    let downloader = AsyncHTTPDownloader()
    let manager = makeManager(downloader: downloader)
    let router = makeRouter(manager: manager, upstream: "127.0.0.1:\(origin.port)")
    print("curl -i http://127.0.0.1:8080/assets/logo.svg")
    print("curl -i http://127.0.0.1:8080/price/USD")
    // Services end in the reverse order: the server, then the manager, which may still revalidate, and then its connections.
    let application = Application(
      router: router, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 8080)),
      services: [downloader, CacheService(manager: manager)])
    try await application.runService()
    await origin.stop()
  }
}
