import CacheUI
import Foundation
import Observation

/// One row without a screen. It observes its model as a view does, and notes when the model changes.
@MainActor
final class MeasuredRow {
  let model: ImageModel
  /// The time from the appearance to the first image.
  private(set) var first: Duration?
  /// The time from the appearance to the end of the load, or `nil` while it is running.
  var final: Duration? { model.phase.isLoading ? nil : latestChange }
  /// Whether the image was available in the turn of the main actor in which the row appeared.
  private(set) var isInFirstFrame = false
  /// The number of changes of the image after that turn.
  private(set) var updates = 0

  private let clock: any CacheClock
  private var start = Duration.zero
  /// The time from the appearance to the latest change of the model.
  private var latestChange = Duration.zero

  init(manager: ResourceManager, clock: any CacheClock) {
    model = ImageModel(manager: manager)
    self.clock = clock
  }

  /// Begins the load, as a view does when it appears.
  func appear(_ url: URL) {
    start = clock.uptime
    model.load(url)
    isInFirstFrame = model.image != nil
    latestChange = elapsed
    if isInFirstFrame { first = latestChange }
    observeImage()
    observePhase()
  }

  /// Returns when the load has ended.
  func ended() async {
    while model.phase.isLoading {
      await withCheckedContinuation { continuation in
        withObservationTracking {
          _ = model.phase
        } onChange: {
          continuation.resume()
        }
      }
    }
  }

  private var elapsed: Duration { clock.uptime - start }

  // An observation ends with the first change. Its callback runs before the change, on the main actor, where the model changes.

  private func observeImage() {
    withObservationTracking {
      _ = model.image
    } onChange: { [weak self] in
      MainActor.assumeIsolated { self?.imageChanges() }
    }
  }

  private func observePhase() {
    withObservationTracking {
      _ = model.phase
    } onChange: { [weak self] in
      MainActor.assumeIsolated { self?.phaseChanges() }
    }
  }

  private func imageChanges() {
    updates += 1
    latestChange = elapsed
    first = first ?? latestChange
    observeImage()
  }

  private func phaseChanges() {
    latestChange = elapsed
    observePhase()
  }
}
