"""The one table of fields: the checks of files, the controls of the panels, the help texts are all made from it.

A field's default is the value in a Scenario with nothing set; it is not repeated here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from .model.spec import FEED_FORWARDS, MIXERS

PANELS = ("model", "hardware", "parallelism", "workload", "assumptions")


@dataclass(frozen=True)
class Field:
    """One thing a person can set.

    `unit` names a quantity of `units.UNITS`, or is choice, catalogue, flag or text. `scale` says how a slider moves:
    log, linear, power2 or divisor. `catalogue` names the catalogue that a catalogue field picks from.
    `optional` fields may be unset (None). `kinds` says to which kinds of plan it matters.
    """

    path: str
    label: str
    unit: str
    panel: str
    help: str
    minimum: float = 0.0
    maximum: float = 1e30
    #: Ends of the slider; typed values may go to minimum and maximum.
    slider: tuple[float, float] | None = None
    scale: str = "linear"
    choices: tuple[str, ...] = ()
    catalogue: str = ""
    optional: bool = False
    advanced: bool = False
    kinds: tuple[str, ...] = ("training", "serving")
    #: What the plan must have for the field to matter, one of the words of traits; empty: nothing.
    needs: str = ""
    #: Whether its slider does with half the width of a panel, beside another such field.
    half: bool = False
    #: Whether a list of whole numbers may stand in place of the word.
    takes_list: bool = False
    suffix: str = field(default="")


_TRAINING = ("training",)
_SERVING = ("serving",)

# one line a field: a table to read down
# fmt: off


def _model() -> tuple[Field, ...]:
    panel = "model"
    return (
        Field("model", "Model", "catalogue", panel, "The model, from the catalogue.", catalogue="models"),
        Field("model.layers", "Layers", "count", panel, "Decoder blocks.", 1, 1000, (1, 160), "linear", half=True),
        Field("model.hidden_size", "Hidden size", "count", panel, "Width of the residual stream.", 1, 65536, (512, 32768), "log", half=True),
        Field("model.heads", "Query heads", "count", panel, "Attention heads.", 1, 1024, (1, 256), "power2", advanced=True, needs="heads"),
        Field("model.kv_heads", "KV heads", "count", panel, "Key and value heads; fewer than query heads is grouped-query attention.", 1, 1024, (1, 128), "power2", advanced=True, needs="kv heads"),
        Field("model.head_dim", "Head size", "count", panel, "Width of one head; 0 is hidden size over heads.", 0, 1024, (32, 512), "power2", advanced=True, needs="kv heads"),
        Field("model.ffn_size", "FFN size", "count", panel, "Inner width of the feed-forward part.", 1, 1048576, (512, 131072), "log", advanced=True, needs="dense"),
        Field("model.experts", "Experts", "count", panel, "Routed experts of a layer; 0: dense.", 0, 65536, (2, 512), "power2", advanced=True, needs="experts"),
        Field("model.experts_per_token", "Experts per token", "count", panel, "Routed experts that a token is sent to.", 0, 65536, (1, 64), "power2", advanced=True, needs="experts"),
        Field("model.expert_size", "Expert size", "count", panel, "Inner width of one routed expert.", 0, 1048576, (256, 32768), "log", advanced=True, needs="experts"),
        Field("model.shared_size", "Shared expert size", "count", panel, "Inner width of all shared experts together; 0: none.", 0, 1048576, advanced=True, needs="experts"),
        Field("model.window", "Window", "count", panel, "Tokens a query looks back in layers with a window or chunks; 0: none.", 0, 1e9, (64, 131072), "power2", advanced=True, needs="window"),
        Field("model.kv_rank", "KV rank", "count", panel, "Width of the cached latent of keys and values; 0: keys and values of heads.", 0, 1048576, (64, 4096), "power2", advanced=True, needs="latent"),
        Field("model.vocabulary", "Vocabulary", "count", panel, "Rows of the embedding.", 2, 4194304, (1000, 512000), "log", advanced=True),
        Field("model.gated", "Gated FFN", "flag", panel, "Three matrices (SwiGLU, GeGLU) instead of two.", advanced=True),
        Field("model.norm", "Norm", "choice", panel, "RMSNorm (gain), LayerNorm (gain and bias, or gain alone), or a norm without parameters.", choices=("rms", "layer", "layer-no-bias", "none"), advanced=True),
        Field("model.tied", "Tied embedding", "flag", panel, "Input embedding and output head are one matrix.", advanced=True),
        Field("model.qkv_bias", "Biases on q, k, v", "flag", panel, "Biases on the query, key and value projections.", advanced=True),
        Field("model.output_bias", "Bias on attention output", "flag", panel, "Bias on the attention output projection.", advanced=True),
        Field("model.mlp_bias", "FFN biases", "flag", panel, "Biases on the feed-forward matrices.", advanced=True),
        Field("model.qk_norm", "Query/key norm", "flag", panel, "A norm on each head of queries and keys.", advanced=True),
        Field("model.parallel_block", "Parallel block", "flag", panel, "Attention and feed-forward part side by side behind one norm.", advanced=True),
        Field("model.positions", "Learned positions", "count", panel, "Rows of learned positions; 0 for rotary and ALiBi.", 0, 1048576, advanced=True),
        Field("model.vocabulary_multiple", "Vocabulary padding", "count", panel, "A training plan pads the vocabulary to a multiple of this.", 1, 65536, advanced=True, kinds=_TRAINING),
        Field("whiteboard.parameters", "Whiteboard parameters", "amount", panel, "The round number that rules of thumb use; unset: the exact count.", 1e3, 1e15, (1e8, 2e12), "log", optional=True, advanced=True),
    )


def _hardware() -> tuple[Field, ...]:
    panel = "hardware"
    device = "cluster.accelerator"
    return (
        Field(device, "Accelerator", "catalogue", panel, "The accelerator, from the catalogue.", catalogue="accelerators"),
        Field("cluster.gpus", "GPUs", "count", panel, "Accelerators in all.", 1, 1048576, (1, 32768), "power2"),
        Field("cluster.gpus_per_node", "GPUs per node", "count", panel, "Accelerators in one server.", 1, 1024, (1, 72), "divisor", advanced=True),
        Field("cluster.network", "Network", "catalogue", panel, "Scale-out network, from the catalogue or as a rate per GPU and direction.", catalogue="networks"),
        Field("cluster.network.bandwidth", "Network rate per GPU", "bytes/s", panel, "One direction, for each GPU.", 1e6, 1e13, (1e9, 4e11), "log"),
        Field("cluster.network.boards", "Boards per node", "count", panel, "Scale-up domains that a node is made of, joined through the host links.", 1, 64, (1, 4), "power2", kinds=_TRAINING, advanced=True),
        Field("cluster.power_limit", "Power limit", "watts", panel, "Power to which each board is held; unset: its design power.", 1, 1e5, (50, 2000), "log", optional=True, kinds=_TRAINING, advanced=True),
        Field(f"{device}.memory", "Memory per GPU", "bytes", panel, "Capacity as printed on the sheet.", 2**30, 2**45, (2**33, 2**39), "log", advanced=True),
        Field(f"{device}.memory_bandwidth", "Memory bandwidth", "bytes/s", panel, "Peak rate of the device memory.", 1e9, 1e15, (2e11, 2e13), "log", advanced=True),
        Field(f"{device}.peak.bf16", "Peak bf16", "FLOP/s", panel, "Dense peak of the matrix units.", 1e9, 1e18, (5e13, 1e16), "log", advanced=True),
        Field(f"{device}.peak.fp16", "Peak fp16", "FLOP/s", panel, "Dense peak of the matrix units.", 1e9, 1e18, (5e13, 1e16), "log", optional=True, advanced=True),
        Field(f"{device}.peak.fp8", "Peak fp8", "FLOP/s", panel, "Dense peak of the matrix units.", 1e9, 1e18, (1e14, 2e16), "log", optional=True, advanced=True),
        Field(f"{device}.link.bandwidth", "Scale-up link", "bytes/s", panel, "One direction, whole link of one GPU.", 1e8, 1e14, (1e10, 4e12), "log", advanced=True),
        Field(f"{device}.link.domain", "Scale-up domain", "count", panel, "GPUs that share the scale-up link.", 1, 16384, (1, 256), "power2", advanced=True),
        Field(f"{device}.power", "Board power", "watts", panel, "Thermal design power.", 1, 1e5, (50, 2000), "log", advanced=True),
        Field("economics.gpu_price", "Price per GPU-hour", "USD/h", panel, "Rental of one GPU for one hour.", 0, 1000, (0.2, 20), "log"),
        Field("economics.power_usage_effectiveness", "PUE", "number", panel, "Power drawn by the site over power drawn by the servers.", 1, 10, (1, 2), advanced=True),
        Field("economics.grid_intensity", "Grid intensity", "kg/kWh", panel, "CO2 equivalent for each kilowatt-hour.", 0, 5, (0, 1), advanced=True),
    )


def _parallelism() -> tuple[Field, ...]:
    panel = "parallelism"
    t = _TRAINING
    return (
        Field("parallelism.tp", "Tensor (TP)", "count", panel, "Ranks that split every matrix.", 1, 16384, (1, 64), "divisor"),
        Field("parallelism.pp", "Pipeline (PP)", "count", panel, "Pipeline stages.", 1, 16384, (1, 128), "divisor"),
        Field("parallelism.cp", "Context (CP)", "count", panel, "Ranks that split each sequence.", 1, 16384, (1, 64), "divisor", kinds=t, advanced=True),
        Field("parallelism.ep", "Expert (EP)", "count", panel, "Ranks over which the routed experts are dealt.", 1, 16384, (1, 256), "divisor", needs="experts"),
        Field("serving.attention_dp", "Attention data (DP)", "count", panel, "Tensor parallel groups with sequences and a cache of their own that share the routed experts.", 1, 16384, (1, 256), "divisor", kinds=_SERVING, advanced=True, needs="experts"),
        Field("parallelism.etp", "Expert tensor (ETP)", "count", panel, "Ranks that split each routed expert.", 1, 16384, (1, 64), "divisor", kinds=t, advanced=True, needs="experts"),
        Field("parallelism.expert_dispatch", "Expert dispatch", "choice", panel, "How tokens reach their experts: library all-to-all, all of them to all ranks, kernels that send a token once a node, or such kernels of a rack.", choices=("all-to-all", "all-gather", "deepep", "rack-domain"), kinds=t, advanced=True, needs="experts"),
        Field("parallelism.vpp", "Virtual stages", "count", panel, "Model chunks a stage holds when the pipeline is interleaved.", 1, 1000, (1, 16), "linear", kinds=t),
        Field("parallelism.zero", "ZeRO stage", "choice", panel, "What is sharded over data parallel ranks: 0 nothing, 1 optimizer, 2 and gradients, 3 and weights.", choices=("0", "1", "2", "3"), kinds=t),
        Field("parallelism.hsdp_replicas", "HSDP replicas", "count", panel, "Replicas of the shard group.", 1, 16384, (1, 64), "divisor", kinds=t, advanced=True),
        Field("parallelism.sp", "Sequence parallel", "flag", panel, "Norms and residuals are split along the sequence inside the tensor parallel group.", kinds=t),
        Field("parallelism.schedule", "Schedule", "choice", panel, "Pipeline schedule.", choices=("1f1b", "interleaved", "gpipe", "zero-bubble", "zero-bubble-v", "dualpipe"), kinds=t, advanced=True),
        Field("parallelism.context_scheme", "Context scheme", "choice", panel, "How keys and values travel under context parallelism.", choices=("ring", "all-gather", "ulysses"), kinds=t, advanced=True),
        Field("parallelism.context_latent", "Pass latents", "flag", panel, "Ranks of a sequence pass on latents, and each makes keys and values of heads from them; else they pass on those.", kinds=t, advanced=True, needs="latent"),
        Field("parallelism.stage_balance", "Stage balance", "choice", panel, "Layers a stage: even, with a layer's slot each for embedding and head, by time, uneven by hand so that no stage waits for the head, or a list.", choices=("even", "slots", "by-time", "spread"), kinds=t, advanced=True, takes_list=True),
        Field("pipeline.async_transfer", "Asynchronous transfers", "choice", panel, "Whether pipeline transfers run behind compute; auto: when the pipeline is interleaved.", choices=("auto", "never", "always"), kinds=t, advanced=True),
        Field("pipeline.drain_every", "Drained every", "count", panel, "Micro-batches after which the pipeline runs empty; unset: once a step.", 1, 1e9, (1, 1024), "power2", optional=True, kinds=t, advanced=True),
        Field("overlap.dp", "Hide gradient traffic", "flag", panel, "Gradient reduction and parameter gathering run behind compute.", kinds=t, advanced=True),
        Field("overlap.parameter_gather", "Hide parameter gathering", "flag", panel, "Updated weights are gathered behind the next forward pass.", kinds=t, advanced=True),
        Field("overlap.tp_forward", "Hide TP in chunks", "flag", panel, "Tensor parallel traffic runs in chunks beside the matrix products.", kinds=t, advanced=True),
        Field("overlap.tp_backward", "Hide TP in backward", "flag", panel, "Backward tensor parallel traffic runs behind the weight gradients.", kinds=t, advanced=True),
    )


def _workload() -> tuple[Field, ...]:
    panel = "workload"
    t, s = _TRAINING, _SERVING
    return (
        Field("training.sequence_length", "Sequence", "count", panel, "Tokens a sequence.", 1, 16777216, (512, 1048576), "power2", kinds=t),
        Field("training.image_tokens", "Image tokens", "count", panel, "Tokens of a sequence's images that its text attends to across, beside the text.", 0, 16777216, (16, 32768), "power2", kinds=t, needs="images"),
        Field("training.micro_batch", "Micro-batch", "count", panel, "Sequences that one rank computes at a time.", 1, 65536, (1, 64), "power2", kinds=t),
        Field("training.global_batch", "Global batch", "count", panel, "Sequences a step, over all ranks.", 1, 16777216, (1, 16384), "power2", kinds=t),
        Field("training.tokens", "Tokens", "tokens", panel, "Tokens to train on.", 1, 1e18, (1e9, 1e14), "log", kinds=t),
        Field("training.precision", "Format", "choice", panel, "Number format of the matrix products.", choices=("bf16", "fp16", "fp32", "fp8", "mxfp8", "fp8-block", "fp8-row", "nvfp4"), kinds=t),
        Field("training.gradient_precision", "Gradients", "choice", panel, "Number format in which gradients are kept and reduced.", choices=("fp32", "bf16"), kinds=t),
        Field("training.state_precision", "Optimizer states", "choice", panel, "Number format of master weights and moments; bf16 keeps 16-bit weights, gradients and moments and nothing else.", choices=("fp32", "bf16"), kinds=t, advanced=True),
        Field("training.logit_bytes", "Bytes per logit", "number", panel, "Bytes alive for each logit at the loss; 0 is a loss fused with the output head; unset: the habit of the framework.", 0, 64, (0, 16), optional=True, kinds=t, advanced=True),
        Field("training.recompute", "Recompute", "choice", panel, "Activations computed again in the backward pass instead of kept; selective: norms and activations; latent-up: what is expanded from a latent; selective-up: both.", choices=("none", "selective", "latent-up", "selective-up", "op-level", "full"), kinds=t),
        Field("training.offload_optimizer", "Optimizer on host", "flag", panel, "Optimizer states are kept and updated in the memory of the host.", kinds=t, advanced=True),
        Field("training.offload_layers", "Layers on host", "count", panel, "Layers whose activations wait in the memory of the host for the backward pass.", 0, 1000, (0, 160), kinds=t, advanced=True),
        Field("training.residual_precision", "Residual stream", "choice", panel, "Number format of what passes from block to block; norms with 32-bit gains make it fp32.", choices=("bf16", "fp32"), kinds=t, advanced=True),
        Field("training.finetune", "Trained", "choice", panel, "The model itself, or adapters beside frozen matrices, which may be quantised.", choices=("full", "lora", "qlora"), kinds=t, advanced=True),
        Field("training.lora.rank", "Adapter rank", "count", panel, "Width between the two matrices of an adapter.", 1, 16384, (1, 256), "power2", kinds=t, advanced=True, needs="adapters"),
        Field("training.lora.targets", "Adapted matrices", "choice", panel, "Which frozen matrices have an adapter.", choices=("q-v", "q-k-v", "attention", "all", "all-and-head"), kinds=t, advanced=True, needs="adapters"),
        Field("training.lora.dropout", "Adapter dropout", "ratio", panel, "Above 0, each adapter keeps a copy of its input and a mask.", 0, 0.99, kinds=t, advanced=True, needs="adapters"),
        Field("training.lora.base_format", "Frozen base", "choice", panel, "Number format of the frozen matrices under QLoRA.", choices=("nf4", "nf4-double", "gptq-g128", "gptq"), kinds=t, advanced=True, needs="frozen base"),
        Field("training.lora.kernels", "Adapter kernels", "choice", panel, "Frozen matrix and adapter one after the other, or in one kernel.", choices=("eager", "fused"), kinds=t, advanced=True, needs="adapters"),
        Field("training.lora.kept_inputs", "Kept inputs", "count", panel, "Copies of the inputs of 4-bit matrices that old kernels keep.", 0, 2, kinds=t, advanced=True, needs="frozen base"),
        Field("training.autocast", "Autocast", "flag", panel, "Products cast their inputs to 16 bits; else adapters in 32 bits keep copies of that width.", kinds=t, advanced=True),
        Field("training.optimizer", "Optimizer", "choice", panel, "Optimizer, which sets the bytes of its states.", choices=("adamw", "adamw-8bit", "adafactor", "muon", "sgd"), kinds=t, advanced=True),
        Field("training.fused_optimizer", "Fused optimizer", "flag", panel, "One pass over parameters and states.", kinds=t, advanced=True),
        Field("training.attention", "Attention", "choice", panel, "Flash kernels keep no score matrix; unfused ones do.", choices=("flash", "unfused"), kinds=t, advanced=True),
        Field("training.attention_kernel", "Attention kernel", "choice", panel, "Which flash kernel; auto takes the usual one of the device.", choices=("auto", "fa2", "fa3", "fa4", "cudnn", "triton"), kinds=t, advanced=True),
        Field("training.fused_gradient_accumulation", "Fused accumulation", "flag", panel, "Weight-gradient kernels add into the gradient themselves.", kinds=t, advanced=True),
        Field("training.projections", "Projections", "choice", panel, "Query, key and value in one matrix, gate and up in another; or each on its own.", choices=("fused", "separate"), kinds=t, advanced=True),
        Field("training.pointwise", "Pointwise kernels", "choice", panel, "Norms and activation as one kernel each, or step by step as an eager framework runs them.", choices=("fused", "eager"), kinds=t, advanced=True),
        Field("training.bucket_bytes", "Gradient bucket", "bytes", panel, "Bytes of gradients reduced at a time; unset: the habit of the framework.", 1e5, 1e12, (1e6, 1e9), "log", optional=True, kinds=t, advanced=True),
        Field("moe.capture", "Expert launches", "choice", panel, "What the host launches of the expert kernels: all of them; a graph captures the rest of a layer; token counts are static; a graph captures the iteration.", choices=("none", "partial", "static", "full"), kinds=t, advanced=True, needs="experts"),
        Field("moe.overlap", "Hide expert exchange", "flag", panel, "Tokens travel to experts behind the compute of another micro-batch.", kinds=t, advanced=True, needs="experts"),
        Field("moe.activation", "Expert activation", "choice", panel, "The activation of experts as one kernel, or a clamped one with biases step by step.", choices=("fused", "eager"), kinds=t, advanced=True, needs="experts"),
        Field("moe.dispatch_precision", "Dispatch format", "choice", panel, "Number format of tokens on their way to experts; results return in 16 bits.", choices=("bf16", "fp8"), kinds=t, advanced=True, needs="experts"),
        Field("moe.imbalance", "Expert imbalance", "number", panel, "Tokens of the busiest expert rank over the mean.", 1, 1000, (1, 4), kinds=t, advanced=True, needs="experts"),
        Field("moe.capacity", "Expert capacity", "number", panel, "Rows that every expert is padded to, over its even share; unset: no token is dropped and none padded.", 0.1, 100, (0.5, 4), optional=True, kinds=t, advanced=True, needs="experts"),
        Field("moe.route_groups", "Routing limit", "count", panel, "Scale-up domains that a token may be sent to; unset: all.", 1, 1024, (1, 16), optional=True, kinds=t, advanced=True, needs="experts"),
        Field("training.kernel_maturity", "Kernel maturity", "choice", panel, "Libraries of a device generation in its first year reach less than later ones.", choices=("mature", "first-year"), kinds=t, advanced=True),
        Field("fp8.cache_weights", "Keep 8-bit weights", "flag", panel, "Weights are cast once a step, not once a micro-batch, and the copies held.", kinds=t, advanced=True, needs="low precision"),
        Field("fp8.parameter_gather", "Gather in 8 bits", "flag", panel, "Updated weights travel as 8-bit numbers; Megatron then holds no 16-bit ones of matrices.", kinds=t, advanced=True, needs="low precision"),
        Field("fp8.activation_inputs", "Keep 8-bit activation inputs", "flag", panel, "What the activation function of an FFN reads is kept for the backward pass in 8 bits.", kinds=t, advanced=True, needs="low precision"),
        Field("training.dropout", "Dropout", "flag", panel, "Masks are kept for the backward pass.", kinds=t, advanced=True),
        Field("training.framework", "Framework", "choice", panel, "Memory and schedule habits of a training stack.", choices=("megatron", "megatron-2022", "megatron-deepspeed", "torchtitan", "torchtune", "hf-trainer", "hf-trainer-fused", "llm-foundry", "litgpt"), kinds=t, advanced=True),
        Field("serving.prompt_tokens", "Prompt", "count", panel, "Tokens of a prompt.", 1, 16777216, (1, 1048576), "power2", kinds=s),
        Field("serving.output_tokens", "Output", "count", panel, "Tokens generated for a request.", 0, 16777216, (1, 65536), "power2", kinds=s),
        Field("serving.image_tokens", "Image tokens", "count", panel, "Tokens of a request's images that its text attends to across, beside the text.", 0, 16777216, (16, 32768), "power2", kinds=s, needs="images"),
        Field("serving.lengths", "Lengths", "choice", panel, "Requests of equal lengths; drawn between 0.8 and 1 of them, as benchmark clients do; or log-normal with them as means, as people ask.", choices=("fixed", "drawn", "log-normal"), kinds=s, advanced=True),
        Field("serving.concurrency", "Concurrency", "count", panel, "Requests decoded together.", 1, 1048576, (1, 4096), "power2", kinds=s),
        Field("serving.max_context", "Max context", "count", panel, "Longest sequence that must be held.", 1, 16777216, (256, 1048576), "power2", kinds=s),
        Field("serving.weight_format", "Weights", "choice", panel, "Number format of the stored weights.", choices=("bf16", "fp16", "fp8", "fp8-block", "int8", "int8-g128", "int4-g128", "int4-g64", "int4-g32", "int4-tinygemm-g32", "int4-tinygemm-g64", "gptq-g128", "gptq-g64", "gptq-g32", "nf4", "mxfp4", "mxfp4-experts", "nvfp4", "gguf-q8_0", "gguf-q6_k", "gguf-q5_k_m", "gguf-q4_k_m", "gguf-q4_k_s", "gguf-q3_k_m", "exl2-2.5", "exl2-3.0", "exl2-4.0"), kinds=s),
        Field("serving.kv_format", "KV cache", "choice", panel, "Number format of the cache.", choices=("bf16", "fp8", "int4"), kinds=s),
        Field("serving.engine", "Engine", "catalogue", panel, "Serving engine and its generation.", catalogue="engines", kinds=s, advanced=True),
        Field("serving.memory_utilization", "Memory utilisation", "ratio", panel, "Share of device memory the engine may use.", 0.01, 1, (0.5, 1), kinds=s, advanced=True),
        Field("serving.max_batched_tokens", "Batched tokens", "count", panel, "Token budget of one engine iteration.", 1, 16777216, (256, 65536), "power2", kinds=s, advanced=True),
        Field("serving.ttft_target", "TTFT target", "seconds", panel, "Wanted time to first token.", 1e-6, 1e5, (0.05, 30), "log", kinds=s, advanced=True),
        Field("serving.tpot_target", "TPOT target", "seconds", panel, "Wanted time per output token.", 1e-6, 1e4, (0.002, 1), "log", kinds=s, advanced=True),
        Field("serving.request_rate", "Request rate", "1/s", panel, "Requests a second; 0 is a closed loop at the concurrency.", 0, 1e9, (0, 100), kinds=s, advanced=True),
        Field("serving.prefix_shared", "Shared prefix", "count", panel, "Tokens at the start of every prompt that are the same: computed and kept once.", 0, 16777216, (16, 65536), "power2", kinds=s, advanced=True),
        Field("serving.disaggregated", "Separate pools", "flag", panel, "Some engines run prompts, the others decode; the cache of a prompt moves between them.", kinds=s, advanced=True),
        Field("serving.speculative.draft_tokens", "Draft tokens", "count", panel, "Tokens that a draft proposes in a cycle; the model checks them in one pass. 0: none.", 0, 64, (0, 16), "linear", kinds=s, advanced=True),
        Field("serving.speculative.acceptance", "Acceptance", "ratio", panel, "Probability that a proposed token is accepted.", 0, 1, (0.3, 1), kinds=s, advanced=True),
        Field("serving.speculative.drafter", "Drafter", "choice", panel, "A smaller model, or a prediction head of the model itself: one layer and the output head (MTP).", choices=("model", "head"), kinds=s, advanced=True),
        Field("serving.speculative.draft_cost", "Draft cost", "ratio", panel, "Time of one draft of a smaller model over that of a decode step; its weights and cache are taken as the same share.", 0, 1, (0, 0.5), kinds=s, advanced=True),
    )


def _assumptions() -> tuple[Field, ...]:
    panel = "assumptions"
    t = _TRAINING
    return (
        Field("training.mfu", "Stated MFU", "ratio", panel, "MFU of the whiteboard's days, such as 50 %; auto: the predicted one.", 0.001, 1, (0.05, 0.8), optional=True, kinds=t),
        Field("training.deadline", "Deadline", "duration", panel, "Time there is for the training, such as 90 d, 12 weeks or 1 y; a bare number is days.", 1, 1e10, (86400, 3.2e8), "log", optional=True, kinds=t),
        Field("reliability.node_failures_per_1000_days", "Node failures per 1000 days", "number", panel, "Unexpected failures of one node in 1000 days.", 0, 1e5, (0, 20), kinds=t),
        Field("reliability.checkpoint_seconds", "Checkpoint", "seconds", panel, "Time one checkpoint blocks training.", 0, 1e5, (0, 300), kinds=t),
        Field("reliability.restart_seconds", "Restart", "seconds", panel, "From a failure to training again.", 0, 1e6, (0, 3600), kinds=t),
        Field("reliability.checkpointing", "Checkpointing", "choice", panel, "What a checkpoint blocks: the seconds stated, writing it to storage, or only its copy to the host.", choices=("stated", "synchronous", "asynchronous"), kinds=t, advanced=True),
        Field("reliability.storage_bandwidth", "Storage rate", "bytes/s", panel, "At which all GPUs together write a checkpoint.", 1e6, 1e15, (1e9, 1e13), "log", kinds=t, advanced=True),
        Field("reliability.straggling_share", "Late collectives", "ratio", panel, "Share of the collectives that are late: a sensitivity.", 0, 1, (0, 0.2), kinds=t, advanced=True),
        Field("reliability.straggling_factor", "Late by", "number", panel, "How many times as long a late collective takes.", 1, 1000, (1, 10), kinds=t, advanced=True),
        Field("measured.step_time", "Measured step", "seconds", panel, "A step time you saw: gives MFU, HFU and the distance to the bound.", 1e-9, 1e7, optional=True, kinds=t, advanced=True),
        Field("measured.tokens_per_s", "Measured tokens/s", "amount", panel, "A throughput you saw, over all GPUs.", 1e-6, 1e15, optional=True, advanced=True),
        Field("measured.ttft", "Measured TTFT", "seconds", panel, "A time to first token you saw.", 1e-9, 1e6, optional=True, kinds=_SERVING, advanced=True),
        Field("measured.tpot", "Measured TPOT", "seconds", panel, "A time per output token you saw.", 1e-9, 1e6, optional=True, kinds=_SERVING, advanced=True),
    )


def _model_facts() -> tuple[Field, ...]:
    panel, most = "model", 1048576
    return (
        Field("model.max_context", "Longest context", "count", panel, "Tokens the model was made for; 0: unknown.", 0, 1e9),
        Field("model.value_dim", "Value head size", "count", panel, "Width of one value head; 0 is that of a key head.", 0, 1024),
        Field("model.sinks", "Attention sinks", "flag", panel, "One trained score a head that stands for no token."),
        Field("model.output_gate", "Output gate", "flag", panel, "A projection as wide as the queries gates what attention gives."),
        Field("model.qk_norm_over", "Query/key norm over", "choice", panel, "Whether the norm is over each head or over the whole projection.", choices=("head", "projection")),
        Field("model.qk_norm_bias", "Query/key norm bias", "flag", panel, "The norm on queries and keys has a bias."),
        Field("model.shared_gate", "Shared expert gate", "flag", panel, "A gate on what the shared experts give."),
        Field("model.router_bias", "Router bias", "choice", panel, "A bias of the router: a parameter, or a buffer that steers routing.", choices=("none", "trained", "steering")),
        Field("model.expert_bias", "Expert biases", "flag", panel, "Biases on the matrices of routed experts."),
        Field("model.expert_latent", "Expert latent", "count", panel, "Width that tokens are compressed to before routed experts; 0: none.", 0, most),
        Field("model.q_rank", "Query rank", "count", panel, "Width of the compressed query of latent attention; 0: not compressed.", 0, most),
        Field("model.nope_dim", "Head size without rotation", "count", panel, "Part of a head of latent attention that is not rotated.", 0, 1024),
        Field("model.rope_dim", "Head size with rotation", "count", panel, "Part of a head of latent attention that is rotated.", 0, 1024),
        Field("model.index_heads", "Index heads", "count", panel, "Heads of the index of sparse attention; 0: none.", 0, 1024),
        Field("model.index_dim", "Index head size", "count", panel, "Width of one head of the index.", 0, 1024),
        Field("model.index_topk", "Indexed keys", "count", panel, "Keys that the index picks for a query.", 0, 1e9),
        Field("model.linear_key_heads", "Linear key heads", "count", panel, "Query and key heads of linear attention.", 0, 1024),
        Field("model.linear_value_heads", "Linear value heads", "count", panel, "Value heads of linear attention.", 0, 1024),
        Field("model.linear_key_dim", "Linear key head size", "count", panel, "Width of a key head of linear attention.", 0, 1024),
        Field("model.linear_value_dim", "Linear value head size", "count", panel, "Width of a value head of linear attention.", 0, 1024),
        Field("model.state_size", "State size", "count", panel, "Width of the state of a state space.", 0, 65536),
        Field("model.ssm_size", "State space inner size", "count", panel, "Inner width of a state space layer.", 0, most),
        Field("model.ssm_heads", "State space heads", "count", panel, "Heads of a Mamba-2 layer.", 0, 65536),
        Field("model.ssm_groups", "State space groups", "count", panel, "Groups of heads of a Mamba-2 layer with projections of their own.", 1, 65536),
        Field("model.ssm_rank", "State space step rank", "count", panel, "Width of the compressed step of a Mamba layer.", 0, most),
        Field("model.ssm_norm", "State space norm", "flag", panel, "A norm with parameters inside a state space layer."),
        Field("model.ssm_bias", "State space biases", "flag", panel, "Biases on the projections of a state space layer."),
        Field("model.conv_size", "Convolution size", "count", panel, "Tokens that a short convolution looks at.", 0, 65536),
        Field("model.conv_bias", "Convolution bias", "flag", panel, "A bias on the short convolution."),
        Field("model.scan_chunk", "Scan chunk", "count", panel, "Tokens that kernels of layers with a state take at a time.", 1, 65536),
        Field("model.norms", "Norms a layer", "choice", panel, "Norms of a layer; 0: two, or one in a parallel block.", choices=("0", "1", "2", "4")),
        Field("model.final_norm", "Final norm", "flag", panel, "A norm before the head."),
        Field("model.embedding_norm", "Embedding norm", "flag", panel, "A norm after the embedding."),
        Field("model.inner_norms", "Inner norms", "flag", panel, "Norms before the last matrix of attention and of the feed-forward part."),
        Field("model.head_bias", "Head bias", "flag", panel, "A bias on the output head."),
        Field("model.activation_parameters", "Activation parameters", "count", panel, "Trained values of the activation of a layer.", 0, most),
        Field("model.embedding_size", "Embedding size", "count", panel, "Width of the embedding; 0 is the hidden size.", 0, 65536),
        Field("model.extra_rows", "Extra embedding rows", "count", panel, "Rows of the embedding that the head does not have.", 0, most),
        Field("model.mtp_modules", "Prediction modules", "count", panel, "Modules that predict further tokens; not in the count of the model.", 0, 64),
        Field("model.vision_parameters", "Vision parameters", "count", panel, "Parameters of a vision tower and its projector.", 0, 1e12),
        Field("model.repeat", "Repeating layers", "count", panel, "Layers at the end of the runs that repeat until all layers are there.", 1, 1000),
        Field("model.runs.count", "Layers", "count", panel, "Equal layers in a row.", 1, 1000),
        Field("model.runs.mixer", "Mixing", "choice", panel, "What mixes tokens.", choices=MIXERS),
        Field("model.runs.feed_forward", "Feed-forward part", "choice", panel, "What follows it.", choices=FEED_FORWARDS),
        Field("model.runs.heads", "Query heads", "count", panel, "Heads of these layers.", 1, 1024),
        Field("model.runs.kv_heads", "KV heads", "count", panel, "Key and value heads of these layers.", 1, 1024),
        Field("model.runs.head_dim", "Head size", "count", panel, "Width of one head of these layers.", 1, 1024),
        Field("model.runs.value_dim", "Value head size", "count", panel, "Width of one value head of these layers.", 1, 1024),
        Field("model.runs.ffn_size", "FFN size", "count", panel, "Inner width of the feed-forward part of these layers.", 1, most),
        Field("model.runs.window", "Window", "count", panel, "Tokens a query looks back in these layers.", 1, 1e9),
        Field("model.runs.sinks", "Attention sinks", "flag", panel, "Whether these layers have sinks."),
        Field("model.runs.indexer", "Index", "flag", panel, "Whether these layers have an index of their own."),
    )


def _facts() -> tuple[Field, ...]:
    panel, device = "hardware", "cluster.accelerator"
    return (
        Field(f"{device}.peak.fp32", "Peak fp32", "FLOP/s", panel, "Dense peak of the vector units.", 1e9, 1e18, optional=True),
        Field(f"{device}.peak.fp4", "Peak fp4", "FLOP/s", panel, "Dense peak of the matrix units.", 1e9, 1e18, optional=True),
        Field(f"{device}.peak.int8", "Peak int8", "FLOP/s", panel, "Dense peak of the matrix units, operations per second.", 1e9, 1e18, optional=True),
        Field(f"{device}.memory_reported", "Reported memory", "bytes", panel, "Total that the vendor's tool shows.", 2**28, 2**45, optional=True),
        Field(f"{device}.pcie", "Host link", "bytes/s", panel, "One direction, after encoding.", 1e8, 1e13),
        Field(f"{device}.units", "Compute units", "count", panel, "Streaming multiprocessors, compute units or matrix engines.", 1, 1e6),
        Field(f"{device}.unit_flops", "FLOPs per unit and clock", "count", panel, "Dense 16-bit FLOPs.", 1, 1e9),
        Field(f"{device}.price", "Rental price", "USD/h", panel, "A published price of one device and hour.", 0, 1000, optional=True),
        Field(f"{device}.year", "Year", "count", panel, "First year in volume.", 0, 2100),
        *(
            Field(f"{device}.measured.{name}", f"Measured {name}", "FLOP/s", panel, "Rate that large matrix products reached.", 1e6, 1e18, optional=True)
            for name in ("fp32", "fp16", "bf16", "fp8", "fp4", "int8")
        ),
        Field(f"{device}.measured.memory_bandwidth", "Measured bandwidth", "bytes/s", panel, "Rate at which large arrays were copied, read and write together.", 1e6, 1e14, optional=True),
        Field("cluster.network.latency_class", "Latency class", "choice", panel, "Fabric, which sets the latency of a hop.", choices=("ib", "roce", "efa", "opa")),
    )

# fmt: on
FIELDS: dict[str, Field] = {
    f.path: f for f in (*_model(), *_hardware(), *_parallelism(), *_workload(), *_assumptions())
}

#: Facts of catalogue entries that a file may state and no panel shows.
FACTS: dict[str, Field] = {f.path: f for f in (*_model_facts(), *_facts())}


def label_of(path: str) -> str:
    """What a field or a fact is called; the path itself where there is none."""
    field = FIELDS.get(path) or FACTS.get(path)
    return field.label if field else path


def of_other_kind(path: str, kind: str) -> str:
    """Why a field changes nothing in a kind of plan, empty where it may change something."""
    field = FIELDS.get(path)
    if field is None or kind in field.kinds:
        return ""
    return f"is a field of {' and '.join(field.kinds)} plans, and this is a {kind} plan (another kind would do)"


def fields_of(
    panel: str, kind: str, advanced: bool | None = None, traits: Collection[str] | None = None
) -> list[Field]:
    """The fields of a panel that matter to a kind of plan, daily ones, advanced ones or (None) all.

    `traits` are what the plan has; without them the fields that need something of it are among them.
    """
    return [
        f
        for f in FIELDS.values()
        if f.panel == panel
        and kind in f.kinds
        and (advanced is None or f.advanced == advanced)
        and (traits is None or not f.needs or f.needs in traits)
    ]
