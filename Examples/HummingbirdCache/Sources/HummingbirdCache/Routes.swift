import AsyncHTTPNetworking
import CacheCore
import CacheManager
import ETagValidation
import Foundation
import Hummingbird
import MemoryStore

/// Returns the manager that all handlers and middleware share: one cache, and one pool of connections.
func makeManager(downloader: any Downloader) -> ResourceManager {
  ResourceManager(
    ResourceManager.Configuration {
      $0.downloader = downloader
      $0.memory = MemoryCache(limits: .init(cost: 64 << 20))
      $0.validator = ETagValidator(mode: .shared)  // The responses are sent to many users.
    })
}

/// Returns a router that serves `/assets/` from the upstream server, and prices that are computed from its exchange rates.
func makeRouter(manager: ResourceManager, upstream: String) -> Router<BasicRequestContext> {
  let router = Router()
  router.add(middleware: CachedUpstream(manager: manager, upstream: upstream, path: "/assets/"))

  router.get("price/:currency") { _, context in
    let currency = try context.parameters.require("currency")
    guard let url = URL(string: "http://\(upstream)/rates.json") else { throw HTTPError(.internalServerError) }
    let resource: Resource<Data>
    do throws(CacheError) {
      resource = try await manager.load(url)  // A cached GET.
    } catch {
      throw HTTPError(error)
    }
    let rates = try JSONDecoder().decode([String: Double].self, from: resource.data)
    guard let rate = rates[currency] else { throw HTTPError(.notFound, message: "unknown currency '\(currency)'") }
    return "\(10 * rate) \(currency) (rates from: \(resource.source))\n"
  }
  return router
}
