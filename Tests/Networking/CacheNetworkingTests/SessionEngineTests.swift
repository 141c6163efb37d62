#if Origin
import CacheCore
@testable import CacheNetworking
import CacheTesting
import Foundation
import LoopbackOrigin
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite("Session engines", .timeLimit(.minutes(30))) struct SessionEngineTests {
  #if os(Linux)
  // In a separate process, because an ended session that is asked for a task terminates the process.
  @Test("the end of a session waits for a task in creation, and the session creates no task afterwards")
  func endWaits() async {
    await #expect(processExitsWith: .success) {
      let origin = try await OriginServer.start()
      let address = origin.url("/a")
      let ends = Recorder<Bool>()
      let engine = SessionEngine(
        configuration: .init(),
        observer: { event in
          if case .sessionEnded(let error) = event { ends.record(error == nil) }
        })

      let task = engine.whileOpen {
        engine.end()
        let task = engine.session.dataTask(with: URLRequest(url: address))
        task.resume()
        return task
      }

      guard task != nil, engine.whileOpen({ true }) == nil else { throw CacheError(.other, reason: "open at the wrong time") }
      await ends.wait(for: 1)
      await origin.stop()
    }
  }
  #endif
}
#endif
