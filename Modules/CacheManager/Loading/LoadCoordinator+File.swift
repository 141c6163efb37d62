internal import CacheCore
internal import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The outcome of a coalesced load into a file, and the partial file that holds its bytes.
private struct Drafted: Shareable {
  var fetched: LoadOutcome
  var draft: PartialFile
  /// Whether other loads copy the partial file too, or still may.
  var isSharedWithOthers: @Sendable () -> Bool

  var isShareable: Bool { fetched.isShareable }
}

/// Loads into files of the caller's.
///
/// Each load has a coalesced load of its own, which no other waiter joins. That one waits for a second coalesced load, which all
/// loads of the resource into files share. The second writes into the partial file of the first load, and the others copy it.
extension LoadCoordinator {
  /// Starts a load into a file. `sink.end` is called exactly once.
  func startFile(_ load: ResolvedRequest, _ destination: FileDestination, _ task: LoadTask, _ sink: Sink<URL>) {
    let load = load.markedIfNested
    let once = EventMailbox(load: load, task: task, sink: sink)
    once.limit(to: load.timeout)
    let waiter = once.waiter { (derived: TransformedOutcome<URL>) in (derived.value, derived.fetched) }
    let id = CoalescedLoadID(request: CoalescingKey(load), transform: "\(CoalescedLoadID.file) \(Revision.random())")
    let isAccepted = coalescer.join(id, load, alone: false, task: task, waiter: waiter) { coalesced in
      coalesced.start { await self.write(load, to: destination, in: $0) }
    }
    if !isAccepted { once.end(.failure(load.managerIsClosed)) }
  }

  private func write(
    _ load: ResolvedRequest, to destination: FileDestination, in coalesced: CoalescedLoad<TransformedOutcome<URL>>
  ) async -> Result<TransformedOutcome<URL>, CacheError> {
    do throws(CacheError) {
      // First, because a load whose file cannot be written sends no request.
      let draft = try await PartialFile.open(destination)
      do throws(CacheError) {
        let drafted = try await drafted(load, draft, in: coalesced)
        if drafted.draft === draft, drafted.isSharedWithOthers() {
          // A copy, because a caller that changes its file must not change the files of other loads.
          try await place(copyOf: draft, at: destination, in: coalesced)
          await draft.discard()
        } else {
          if drafted.draft !== draft { try await draft.copy(drafted.draft) }
          try await place(draft, in: coalesced)
        }
        return .success(TransformedOutcome(value: destination.url, fetched: drafted.fetched))
      } catch {
        await draft.discard()
        throw error
      }
    } catch {
      return .failure(error.about(load.address))
    }
  }

  private func place(
    copyOf original: PartialFile, at destination: FileDestination, in coalesced: CoalescedLoad<TransformedOutcome<URL>>
  ) async throws(CacheError) {
    let copy = try await PartialFile.open(destination)
    do throws(CacheError) {
      try await copy.copy(original)
      try await place(copy, in: coalesced)
    } catch {
      await copy.discard()
      throw error
    }
  }

  /// Moves the file into place, unless the waiter was told that the load is cancelled.
  private func place(_ draft: PartialFile, in coalesced: CoalescedLoad<TransformedOutcome<URL>>) async throws(CacheError) {
    guard coalesced.settle() else { throw .cancelled }
    try await draft.place()
  }

  /// Loads the bytes into a partial file: this one, or that of an earlier load.
  private func drafted(
    _ load: ResolvedRequest, _ draft: PartialFile, in coalesced: CoalescedLoad<TransformedOutcome<URL>>
  ) async throws(CacheError) -> Drafted {
    do throws(CacheError) {
      return try await drafted(load, draft, alone: false, in: coalesced)
    } catch {
      // The file of another load could not be written. This file may be on another disk, or in a folder that still exists.
      guard error.code == .fileSystem || error.code == .diskFull, let path = error.path, path != draft.target, draft.count == 0,
        !error.isAboutSourceFile
      else { throw error }
      return try await drafted(load, draft, alone: true, in: coalesced)
    }
  }

  private func drafted(
    _ load: ResolvedRequest, _ draft: PartialFile, alone: Bool, in coalesced: CoalescedLoad<TransformedOutcome<URL>>
  ) async throws(CacheError) -> Drafted {
    let waiting = WaitingTask<Drafted>(coalesced.priority)
    join(load, draft, alone: alone, task: waiting.link, waiting.waiter)
    let outcome = try await waiting.outcome { event in
      switch event {
      case .progress(let progress):
        coalesced.report(.progress(progress))
        return nil
      // A file is written once. The response that comes after this one goes into the store alone.
      case .stale(let old): return old
      }
    }
    guard let outcome else { throw .cancelled }
    return try outcome.get()
  }

  private func join(
    _ load: ResolvedRequest, _ draft: PartialFile, alone: Bool, task: LoadTask, _ waiter: CoalescedLoad<Drafted>.Waiter
  ) {
    let writing = load.with { $0.destination = .file(draft) }
    let joining = waiter.askingAlone { self.join(load, draft, alone: true, task: task, waiter) }
    let id = CoalescedLoadID(request: CoalescingKey(load), transform: CoalescedLoadID.file)
    queuedPriorities.raise(load, to: task.priority.level)
    let isAccepted = coalescer.join(id, load, alone: alone, task: task, waiter: joining) { coalesced in
      coalesced.start { coalesced in
        let result = await self.fetch(writing, in: coalesced.number, coalesced.priority) { event in
          switch event {
          case .progress(let progress): coalesced.report(.progress(progress))
          case .stale(let old): coalesced.report(.stale(Drafted(fetched: old, draft: draft) { true }))
          }
        }
        if coalesced.hasSatisfied { load.observeBackground(result) }
        return result.map { Drafted(fetched: $0, draft: draft) { coalesced.hasBeenShared } }
      }
    }
    if !isAccepted { waiter.receive(.end(.failure(load.managerIsClosed))) }
  }
}
