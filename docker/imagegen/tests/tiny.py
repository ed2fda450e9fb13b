"""Makes a tiny Stable Diffusion pipeline with random weights. It draws noise, in the same way as a real one."""

import json
from pathlib import Path

import torch
from diffusers import AutoencoderKL, EulerDiscreteScheduler, StableDiffusionPipeline, UNet2DConditionModel
from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
from transformers import CLIPConfig, CLIPImageProcessor, CLIPTextConfig, CLIPTextModel, CLIPTokenizer


def tokenizer(folder: Path) -> CLIPTokenizer:
    """Makes a tokenizer that knows letters alone."""
    letters = [chr(code) for code in range(33, 127)]
    words = letters + [letter + "</w>" for letter in letters] + ["<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=77)


def pipeline(folder: Path) -> Path:
    """Saves the pipeline as safetensors."""
    torch.manual_seed(0)
    tokens = tokenizer(folder / "letters")
    text = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=len(tokens), hidden_size=32, intermediate_size=37, num_hidden_layers=2, num_attention_heads=4,
            bos_token_id=tokens.bos_token_id, eos_token_id=tokens.eos_token_id, pad_token_id=tokens.pad_token_id,
        )
    )
    unet = UNet2DConditionModel(
        block_out_channels=(32, 64), layers_per_block=1, sample_size=32, in_channels=4, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=32, attention_head_dim=8,
    )
    vae = AutoencoderKL(
        block_out_channels=[32, 64], in_channels=3, out_channels=3, latent_channels=4,
        down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2,
    )
    scheduler = EulerDiscreteScheduler(steps_offset=1, beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")
    pipe = StableDiffusionPipeline(
        vae=vae, text_encoder=text, tokenizer=tokens, unet=unet, scheduler=scheduler, safety_checker=None,
        feature_extractor=None, requires_safety_checker=False,
    )
    target = folder / "tiny"
    pipe.save_pretrained(target, safe_serialization=True)
    return target


def checker(folder: Path, flags_everything: bool) -> Path:
    """Saves a safety checker with random weights that flags everything, or nothing."""
    torch.manual_seed(0)
    vision = {"hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32, "patch_size": 8}
    model = StableDiffusionSafetyChecker(CLIPConfig(vision_config=vision, text_config={}, projection_dim=32))
    bar = -2.0 if flags_everything else 2.0
    torch.nn.init.constant_(model.concept_embeds_weights, bar)
    torch.nn.init.constant_(model.special_care_embeds_weights, 2.0)
    target = folder / ("strict" if flags_everything else "mild")
    model.save_pretrained(target, safe_serialization=True)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(target)
    return target
